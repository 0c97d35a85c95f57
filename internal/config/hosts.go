package config

import (
	"time"
)

// maxHostTimeout bounds one command on a host: a step waits minutes for its proof, and not longer for its call.
const maxHostTimeout = 5 * time.Minute

// Hosts are the machines' operating systems, over SSH.
type Hosts struct {
	User string
	Port int
	// KeyFile and KnownHostsFile are read again when they change.
	KeyFile, KnownHostsFile string
	// Sudo: commands that need it go through sudo; otherwise User is root.
	Sudo    bool
	Timeout time.Duration
	// Kubelet and Containerd are units; Units are further ones that a step may name.
	Kubelet, Containerd string
	Units               []string
	// AddressTypes of a Node's addresses, in the order in which they are tried.
	AddressTypes []string
}

func (b *builder) buildHosts(raw *rawHosts) {
	if raw == nil {
		return
	}
	at := pointer{"providers", "hosts"}
	out := &Hosts{
		User: raw.User, Port: raw.Port, Sudo: raw.Sudo,
		KeyFile:        b.SecretFile(at.To("keyFile"), raw.KeyFile),
		KnownHostsFile: b.SecretFile(at.To("knownHostsFile"), raw.KnownHostsFile),
		Kubelet:        raw.Kubelet, Containerd: raw.Containerd, Units: raw.Units, AddressTypes: raw.AddressTypes,
	}
	var ok bool
	if out.Timeout, ok = b.Duration(at.To("timeout"), raw.Timeout, time.Second); ok && out.Timeout > maxHostTimeout {
		b.Fault(at.To("timeout"), "%s is too long; write at most 5m, a command only starts a restart", raw.Timeout)
	}
	if !raw.Sudo && raw.User != "root" && !b.Faulty(at.To("sudo")) && !b.Faulty(at.To("user")) {
		b.Fault(at.To("sudo"), "%q may restart nothing without it; write true, or user: root", raw.User)
	}
	if raw.Containerd == raw.Kubelet && raw.Kubelet != "" {
		b.Fault(at.To("containerd"), "%q is the kubelet's unit; write containerd's", raw.Containerd)
	}
	for i, unit := range raw.Units {
		switch unit {
		case "":
		case raw.Kubelet:
			b.Fault(at.To("units", i), "%q has a step of its own, restart-kubelet; remove it here", unit)
		case raw.Containerd:
			b.Fault(at.To("units", i), "%q has a step of its own, restart-containerd; remove it here", unit)
		}
	}
	b.config.Hosts = out
}
