package main

import (
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/hosts"
	hostsettings "drydock.dev/drydock/remediations/hosts/settings"
)

// newHosts is how units on hosts are restarted; nil: it is not configured.
func newHosts(cfg *config.Config) (*hosts.Client, error) {
	h, ok := config.Of[*hostsettings.Hosts](cfg)
	if !ok {
		return nil, nil
	}
	return hosts.New(hosts.Options{
		User: h.User, Port: h.Port, KeyFile: h.KeyFile, KnownHostsFile: h.KnownHostsFile, Sudo: h.Sudo, Timeout: h.Timeout,
		Units: append([]string{h.Kubelet, h.Containerd}, h.Units...),
	})
}
