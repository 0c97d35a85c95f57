package kilo

import "drydock.dev/drydock/remediations/providers/kilo/settings"

// Configured returns the Mesh for the configuration's section. o has the options that are not in
// the configuration.
func Configured(k *settings.Kilo, o Options) (*Mesh, error) {
	o.TopologyLabel, o.Job, o.HTTPConfig, o.AllowControlPlane = k.TopologyLabel, k.Job, k.HTTPConfig, k.AllowControlPlane
	o.Timeout, o.MaxAge, o.Pairs = k.Timeout, k.MaxAge, k.Pairs
	for _, u := range k.Prometheus {
		o.Prometheus = append(o.Prometheus, u.String())
	}
	return New(o)
}
