package config

import (
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// ControlPlane has the hosts of the cluster's API servers.
type ControlPlane struct {
	Hosts []ControlPlaneHost
	Port  int
	// CAFile has the authorities of the API servers' certificates. If it is empty, Drydock uses the
	// cluster's own.
	CAFile string
}

// ControlPlaneHost is one host of an API server.
type ControlPlaneHost struct {
	// Name is the name of the host's Node. Drydock tries the addresses in order.
	Name      string
	Addresses []string
}

func (b *builder) buildControlPlane(raw *rawConfig) {
	b.config.StateDir = raw.StateDir
	b.stateDir(raw)
	c, at := raw.ControlPlane, pointer{"controlPlane"}
	if c == nil {
		return
	}
	out := &ControlPlane{Port: c.Port}
	if ca := at.To("caFile"); c.CAFile != "" {
		out.CAFile = b.resolve(c.CAFile)
		if !b.skipFiles {
			if pem := b.file(ca, out.CAFile); pem != nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
				b.Fault(ca, "file %q contains no certificate; write one in PEM", out.CAFile)
			}
		}
	}
	names, addresses := map[string]int{}, map[netip.Addr]string{}
	for i, h := range c.Hosts {
		p := at.To("hosts", i)
		b.ObjectName(p.To("name"), h.Name)
		if first, twice := names[h.Name]; twice {
			b.Fault(p.To("name"), "%q is already the name of item [%d]; write another", h.Name, first)
		} else {
			names[h.Name] = i
		}
		host := ControlPlaneHost{Name: h.Name}
		switch {
		case h.Address != "" && h.Addresses != nil:
			b.Fault(p.To("addresses"), "address is set, too; remove one of them")
		case h.Address != "":
			host.Addresses = b.address(p.To("address"), h.Address, h.Name, addresses)
		case h.Addresses != nil:
			for j, text := range h.Addresses {
				host.Addresses = append(host.Addresses, b.address(p.To("addresses", j), text, h.Name, addresses)...)
			}
		case !b.Faulty(p.To("address")) && !b.Faulty(p.To("addresses")):
			b.Fault(p.To("address"), "missing; write an IP address, or write addresses if the host has several")
		}
		out.Hosts = append(out.Hosts, host)
		b.core.ControlPlaneHosts = append(b.core.ControlPlaneHosts, h.Name)
	}
	b.config.ControlPlane = out
	// This check comes last, because a fault of the section would suppress later faults of its parts.
	if b.config.Providers["hosts"] == nil && !b.Faulty(pointer{"providers", "hosts"}) {
		b.Fault(at, "needs providers.hosts, which restarts services on hosts; write providers: {hosts: {keyFile: ..., knownHostsFile: ...}}")
	}
}

// address refuses a name, because the resolver may run in the cluster that is down.
func (b *builder) address(p pointer, text, host string, taken map[netip.Addr]string) []string {
	if b.Faulty(p) {
		return nil
	}
	ip, err := netip.ParseAddr(text)
	switch ip = ip.Unmap(); {
	case err != nil && strings.HasPrefix(text, "["):
		b.Fault(p, "%s is not an IP address; write it without brackets and port", show(text))
	case err != nil:
		b.Fault(p, "%s is not an IP address; write for example 192.0.2.11, because Drydock may be unable to look up a name while the cluster is down", show(text))
	case ip.IsUnspecified() || ip.IsMulticast() || ip.Zone() != "":
		b.Fault(p, "%s is not the address of one host; write for example 192.0.2.11", show(text))
	case taken[ip] != "":
		b.Fault(p, "%s is already an address of %s; write an address that only this host has", show(text), taken[ip])
	default:
		taken[ip] = host
		return []string{ip.String()}
	}
	return nil
}

func (b *builder) stateDir(raw *rawConfig) {
	p, dir := pointer{"stateDir"}, raw.StateDir
	switch {
	case b.Faulty(p):
	case dir == "" && raw.ControlPlane != nil:
		b.Fault(p, "missing; controlPlane needs a folder that is kept when the process ends, for example /var/lib/drydock")
	case dir == "":
	case !filepath.IsAbs(dir) || filepath.Clean(dir) == "/":
		b.Fault(p, "%s is not an absolute path; write for example /var/lib/drydock", show(dir))
	case !b.skipFiles:
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			b.Fault(p, "%s exists and is not a folder; remove it or write another path", show(dir))
		}
	}
}
