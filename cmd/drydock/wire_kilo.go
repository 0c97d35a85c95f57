package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kilo"
	kilosettings "drydock.dev/drydock/remediations/kilo/settings"
	"drydock.dev/drydock/remediations/kube"
)

var _ engine.Locations = (*kilo.Mesh)(nil)

// newLeaders is the mesh whose leaders can be moved; nil: none is configured.
func newLeaders(cfg *config.Config, clients kubernetes.Interface, fleet kube.Fleet) (engine.Locations, error) {
	k, ok := config.Of[*kilosettings.Kilo](cfg)
	if !ok {
		return nil, nil
	}
	o := kilo.Options{
		API: clients.CoreV1().Nodes(), Leases: clients.CoordinationV1().Leases(corev1.NamespaceNodeLease), Nodes: fleet.Nodes, TopologyLabel: k.TopologyLabel, Job: k.Job, HTTPConfig: k.HTTPConfig, Timeout: k.Timeout, MaxAge: k.MaxAge,
		AllowControlPlane: k.AllowControlPlane, HoldWhen: cfg.Core.HoldWhen, Now: time.Now,
	}
	for _, u := range k.Prometheus {
		o.Prometheus = append(o.Prometheus, u.String())
	}
	mesh, err := kilo.New(o)
	if err != nil {
		return nil, err // not a nil *kilo.Mesh in an interface that is not nil
	}
	return mesh, nil
}

// callTimeoutOf bounds one call to any provider: a look at the mesh lists all Nodes and asks Prometheus, a move lists them and
// writes on some.
func callTimeoutOf(cfg *config.Config, actuators time.Duration) time.Duration {
	k, ok := config.Of[*kilosettings.Kilo](cfg)
	if !ok {
		return actuators
	}
	return max(actuators, kilo.CallTimeout(k.Timeout))
}

// leads is how the receiver finds the leader of a location; nil: there is no mesh.
func leads(mesh engine.Locations) func(location string) string {
	if mesh == nil {
		return nil
	}
	return mesh.Leads
}
