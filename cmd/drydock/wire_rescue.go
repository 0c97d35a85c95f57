package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/providers/hosts"
	hostsettings "drydock.dev/drydock/remediations/providers/hosts/settings"
	"drydock.dev/drydock/remediations/rescue"
	"drydock.dev/drydock/remediations/rescue/statefile"
)

// newRescue returns nil if controlPlane is not configured.
func (p *program) newRescue() (*rescue.Rescue, error) {
	c := p.cfg.ControlPlane
	own, ok := config.Of[*hostsettings.Hosts](p.cfg)
	if c == nil || !ok { // the configuration has no control plane without hosts
		return nil, nil
	}
	o := hosts.ControlPlaneOptions{Port: c.Port, CAFile: c.CAFile, Now: time.Now}
	if o.CAFile == "" {
		o.CAFile, o.CA = p.rest.CAFile, p.rest.CAData
	}
	for _, h := range c.Hosts {
		o.Hosts = append(o.Hosts, hosts.Host{Name: h.Name, Addresses: h.Addresses, Configured: true})
	}
	plane, err := hosts.NewControlPlane(o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.cfg.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	journal, err := statefile.Open(p.cfg.StateDir, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if torn := journal.Torn(); torn != "" {
		p.log.Info("a crash cut off the journal's last line; Drydock drops the line, and did nothing for it", "line", torn)
	}
	return rescue.New(rescue.Options{
		Config: p.cfg.Core, Hosts: hosts.Kubelets{ControlPlane: plane, Client: p.hosts, Unit: own.Kubelet}, Journal: journal, Alerts: p.alerts,
		History: kube.Histories{Client: p.clients}, Events: p, Metrics: metrics.Registry, Clock: clock.RealClock{}, Log: p.log.WithName("rescue"),
		PollInterval: p.cfg.Alertmanager.PollInterval, CallTimeout: callMargin + hostCalls(own.Timeout), NewID: newID,
	}), nil
}
