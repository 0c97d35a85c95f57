// Package settings has the section providers.hosts of the configuration: access to the machines'
// operating systems over SSH.
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

// Section is the key providers.hosts of the configuration.
var Section = section.Section{
	Key: "hosts", Schema: schema, Read: section.Declared[Hosts](),
	Steps: map[string]string{"restart-kubelet": "", "restart-containerd": "", "restart-unit": ".units", "reboot": ".reboot", "sysrq": ".sysrq"},
}

// MaxAddresses is the largest number of addresses of a host: an internal and an external one, each
// as IPv4 and IPv6.
const MaxAddresses = 4

// Hosts is the content of providers.hosts.
type Hosts struct {
	User string `json:"user"`
	Port int    `json:"port"`
	// Both files are read again when they change.
	KeyFile        string `json:"keyFile" as:"file"`
	KnownHostsFile string `json:"knownHostsFile" as:"file"`
	// Sudo runs commands that need root through sudo. Without it, User must be root.
	Sudo bool `json:"sudo"`
	// Timeout limits one command. It can be short, because a command only starts a restart.
	Timeout time.Duration `json:"timeout" most:"5m, a command only starts a restart"`
	// Kubelet and Containerd are names of systemd units. Units has further units that a step may
	// restart.
	Kubelet    string   `json:"kubelet"`
	Containerd string   `json:"containerd"`
	Units      []string `json:"units"`
	// AddressTypes are the types of Node addresses to use, the preferred ones first.
	AddressTypes []string `json:"addressTypes"`
	// Reboot and Sysrq allow the steps reboot and sysrq.
	Reboot bool `json:"reboot"`
	Sysrq  bool `json:"sysrq"`
	// NodeSelector selects the Nodes that the provider serves. Nil selects all Nodes that no other
	// provider claims.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Named returns the units that steps may restart: Kubelet, Containerd and Units.
func (h *Hosts) Named() (units []string) {
	for _, unit := range append([]string{h.Kubelet, h.Containerd}, h.Units...) {
		if unit != "" {
			units = append(units, unit)
		}
	}
	return units
}

// Check implements section.Checker.
func (h *Hosts) Check(r section.Reader, at section.Pointer) {
	if !h.Sudo && h.User != "root" && !r.Faulty(at.To("sudo")) && !r.Faulty(at.To("user")) {
		r.Fault(at.To("sudo"), "user %q cannot restart units without sudo; write true, or user: root", h.User)
	}
	if h.Containerd == h.Kubelet && h.Kubelet != "" {
		r.Fault(at.To("containerd"), "%q is the kubelet's unit; write the name of containerd's unit", h.Containerd)
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

// Serves implements section.Provider. A host is found by the Node's addresses, whichever system
// provides the machine.
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

// WarnOfPlans implements section.Planned. It warns if Sysrq is true and no plan has the step sysrq:
// in an earlier version, the step reboot used sysrq.
func (h *Hosts) WarnOfPlans(at section.Pointer, planned func(step string) bool, say func(section.Pointer, string, ...any)) {
	if h.Sysrq && !planned("sysrq") {
		say(at.To("sysrq"), "no plan has the step sysrq, so Drydock never uses sysrq; the step reboot always uses systemctl reboot; add {step: sysrq, wait: 10m} after the step reboot, or remove this")
	}
}
