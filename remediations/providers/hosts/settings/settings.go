// Package settings is the section of the configuration of the machines' operating systems, over
// SSH.
package settings

import (
	_ "embed"
	"time"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.hosts.
var Section = section.Section{
	Key: "hosts", Schema: schema, Read: section.Declared[Hosts](),
	Steps: map[string]string{"restart-kubelet": "", "restart-containerd": "", "restart-unit": ".units", "reboot": ".reboot", "sysrq": ".sysrq"},
}

// MaxAddresses bounds the addresses of one host: IPv4 and IPv6, inside and outside, are four.
const MaxAddresses = 4

// Hosts configures access to the machines' operating systems, over SSH.
type Hosts struct {
	User string `json:"user"`
	Port int    `json:"port"`
	// KeyFile and KnownHostsFile are read again when they change.
	KeyFile        string `json:"keyFile" as:"file"`
	KnownHostsFile string `json:"knownHostsFile" as:"file"`
	// Sudo: commands that need root use sudo; otherwise User is root.
	Sudo bool `json:"sudo"`
	// Timeout bounds one command: a step waits minutes for its proof, but much less for its call.
	Timeout time.Duration `json:"timeout" most:"5m, a command only starts a restart"`
	// Kubelet and Containerd are units; Units are further ones that a step may name.
	Kubelet    string   `json:"kubelet"`
	Containerd string   `json:"containerd"`
	Units      []string `json:"units"`
	// AddressTypes are the types of a Node's addresses, in the order that Drydock tries them.
	AddressTypes []string `json:"addressTypes"`
	// Reboot: the provider carries out reboot. Sysrq: it carries out sysrq.
	Reboot bool `json:"reboot"`
	Sysrq  bool `json:"sysrq"`
	// NodeSelector selects the Nodes that the provider serves; nil: any that no other provider
	// claims.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Check implements section.Checker.
func (h *Hosts) Check(r section.Reader, at section.Pointer) {
	if !h.Sudo && h.User != "root" && !r.Faulty(at.To("sudo")) && !r.Faulty(at.To("user")) {
		r.Fault(at.To("sudo"), "%q may restart nothing without it; write true, or user: root", h.User)
	}
	if h.Containerd == h.Kubelet && h.Kubelet != "" {
		r.Fault(at.To("containerd"), "%q is the kubelet's unit; write containerd's", h.Containerd)
	}
	for i, unit := range h.Units {
		switch unit {
		case "":
		case h.Kubelet:
			r.Fault(at.To("units", i), "%q has a step of its own, restart-kubelet; remove it here", unit)
		case h.Containerd:
			r.Fault(at.To("units", i), "%q has a step of its own, restart-containerd; remove it here", unit)
		}
	}
}

// Serves implements section.Provider. A Node's host is found by its addresses, whichever provider
// its machine has.
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

// WarnOfPlans implements section.Planned. In an earlier version, a step reboot that was not soft
// used sysrq.
func (h *Hosts) WarnOfPlans(at section.Pointer, planned func(step string) bool, say func(section.Pointer, string, ...any)) {
	if h.Sysrq && !planned("sysrq") {
		say(at.To("sysrq"), "no plan has the step sysrq, so no alert leads to one: the step reboot is systemctl reboot, whether soft or not; write {step: sysrq, wait: 10m} after the step reboot, or remove this")
	}
}
