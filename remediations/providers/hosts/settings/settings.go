// Package settings is the section of the configuration of the machines' operating systems, over SSH.
package settings

import (
	_ "embed"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.hosts.
var Section = section.Section{
	Key: "hosts", Schema: schema, Read: section.Reading(read),
	Steps: map[string]string{"restart-kubelet": "", "restart-containerd": "", "restart-unit": ".units", "reboot": ".reboot", "sysrq": ".sysrq"},
}

type raw struct {
	User                    string
	Port                    int
	KeyFile, KnownHostsFile string
	Sudo                    bool
	Timeout                 string
	Kubelet, Containerd     string
	Units, AddressTypes     []string
	Reboot, Sysrq           bool
	NodeSelector            *metav1.LabelSelector
}

// maxHostTimeout bounds one command on a host: a step waits minutes for its proof, and not longer for its call.
const maxHostTimeout = 5 * time.Minute

// MaxAddresses bounds whom one host is asked at: IPv4 and IPv6, inside and outside, are four.
const MaxAddresses = 4

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
	// Reboot: it carries out reboot. Sysrq: it carries out sysrq.
	Reboot, Sysrq bool
	// NodeSelector says which Nodes it serves; nil: any that no other provider claims.
	NodeSelector k8slabels.Selector
}

func read(r section.Reader, at section.Pointer, raw *raw) section.Provider {
	out := &Hosts{
		User: raw.User, Port: raw.Port, Sudo: raw.Sudo,
		KeyFile:        r.SecretFile(at.To("keyFile"), raw.KeyFile),
		KnownHostsFile: r.SecretFile(at.To("knownHostsFile"), raw.KnownHostsFile),
		Kubelet:        raw.Kubelet, Containerd: raw.Containerd, Units: raw.Units, AddressTypes: raw.AddressTypes,
		Reboot: raw.Reboot, Sysrq: raw.Sysrq, NodeSelector: r.Nodes(at.To("nodeSelector"), raw.NodeSelector),
	}
	var ok bool
	if out.Timeout, ok = r.Duration(at.To("timeout"), raw.Timeout, time.Second); ok && out.Timeout > maxHostTimeout {
		r.Fault(at.To("timeout"), "%s is too long; write at most 5m, a command only starts a restart", raw.Timeout)
	}
	if !raw.Sudo && raw.User != "root" && !r.Faulty(at.To("sudo")) && !r.Faulty(at.To("user")) {
		r.Fault(at.To("sudo"), "%q may restart nothing without it; write true, or user: root", raw.User)
	}
	if raw.Containerd == raw.Kubelet && raw.Kubelet != "" {
		r.Fault(at.To("containerd"), "%q is the kubelet's unit; write containerd's", raw.Containerd)
	}
	for i, unit := range raw.Units {
		switch unit {
		case "":
		case raw.Kubelet:
			r.Fault(at.To("units", i), "%q has a step of its own, restart-kubelet; remove it here", unit)
		case raw.Containerd:
			r.Fault(at.To("units", i), "%q has a step of its own, restart-containerd; remove it here", unit)
		}
	}
	return out
}

// Serves is section.Provider's. Which host is a Node's is found by its addresses, whoever its machine's provider is.
func (h *Hosts) Serves() remediations.Provider {
	p := remediations.Provider{Steps: []string{"restart-kubelet", "restart-containerd"}, NodeSelector: h.NodeSelector}
	if h.Reboot {
		p.Steps = append(p.Steps, "reboot")
	}
	if h.Sysrq {
		p.Steps = append(p.Steps, "sysrq")
	}
	if len(h.Units) > 0 {
		p.Steps = append(p.Steps, "restart-unit")
	}
	return p
}

// Warn is section.Provider's.
func (*Hosts) Warn(section.Pointer, func(section.Pointer, string, ...any)) {}

// WarnOfPlans is section.Planned's. In an earlier version sysrq was how a step reboot went that was not soft.
func (h *Hosts) WarnOfPlans(at section.Pointer, planned func(step string) bool, say func(section.Pointer, string, ...any)) {
	if h.Sysrq && !planned("sysrq") {
		say(at.To("sysrq"), "no plan has the step sysrq, so no alert leads to one: the step reboot is systemctl reboot, whether soft or not; write {step: sysrq, wait: 10m} after the step reboot, or remove this")
	}
}
