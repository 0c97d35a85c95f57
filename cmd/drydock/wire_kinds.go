package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/providers/kilo"
	kilosettings "drydock.dev/drydock/remediations/providers/kilo/settings"
)

var _ engine.Locations = (*kilo.Mesh)(nil)

// joinMesh returns the Carrier for alerts about mesh locations, or nil if no mesh is configured.
func joinMesh(j *joined, o *engine.Options) (intake.Carrier, error) {
	k, ok := config.Of[*kilosettings.Kilo](j.cfg)
	if !ok {
		return nil, nil
	}
	mesh, err := kilo.New(kilo.Options{
		Kilo: *k, API: j.clients.CoreV1().Nodes(), Leases: j.clients.CoordinationV1().Leases(corev1.NamespaceNodeLease), Nodes: j.fleet.Nodes,
		HoldWhen: j.cfg.Core.HoldWhen, Registry: j.cfg.Core.Registry, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	o.Locations, o.CallTimeout = mesh, max(o.CallTimeout, kilo.CallTimeout(k.Timeout))
	return intake.OfLocations(j.fleet.RepairingLocations, mesh.Leads), nil
}
