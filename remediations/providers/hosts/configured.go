package hosts

import "drydock.dev/drydock/remediations/providers/hosts/settings"

// Configured makes the Client for the configuration's section.
func Configured(h *settings.Hosts) (*Client, error) {
	return New(Options{
		User: h.User, Port: h.Port, KeyFile: h.KeyFile, KnownHostsFile: h.KnownHostsFile, Sudo: h.Sudo, Timeout: h.Timeout,
		Units: append([]string{h.Kubelet, h.Containerd}, h.Units...),
	})
}
