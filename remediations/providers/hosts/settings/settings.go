// Package settings is the configuration's section providers.hosts: access to the machines'
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

// Section declares providers.hosts: schema, reader, and steps.
var Section = section.Section{
	Key: "hosts", Schema: schema, Read: section.Declared[Hosts](),
	Steps: map[string]string{"restart-kubelet": "", "restart-containerd": "", "restart-unit": ".units", "reboot": ".reboot", "sysrq": ".sysrq"},
}

// MaxAddresses is how many addresses a host may have: internal and external, each as IPv4 and IPv6.
const MaxAddresses = 4

// Hosts is the content of providers.hosts.
type Hosts struct {
	User string `json:"user"`
	Port int    `json:"port"`
	// Drydock reads KeyFile and KnownHostsFile again when they change.
	KeyFile        string `json:"keyFile" as:"file"`
	KnownHostsFile string `json:"knownHostsFile" as:"file"`
	// Sudo runs commands that need root by sudo. Without it, User must be root.
	Sudo bool `json:"sudo"`
	// Timeout limits one command. It is short, because a command only starts a restart. The step
	// then waits minutes for the proof.
	Timeout time.Duration `json:"timeout" most:"5m, a command only starts a restart"`
	// Kubelet and Containerd are the names of their systemd units. Units are further units that a
	// step may restart.
	Kubelet    string   `json:"kubelet"`
	Containerd string   `json:"containerd"`
	Units      []string `json:"units"`
	// AddressTypes are the types of Node addresses that Drydock uses, in this order.
	AddressTypes []string `json:"addressTypes"`
	// Reboot and Sysrq enable the steps of that name.
	Reboot bool `json:"reboot"`
	Sysrq  bool `json:"sysrq"`
	// NodeSelector selects the Nodes that the provider serves. A nil selector selects all Nodes
	// that no other provider claims.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Named are the units that steps may name.
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

// Serves implements section.Provider. A host is found by the Node's addresses, so the provider of
// the machine does not matter.
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

// WarnOfPlans implements section.Planned. The warning exists because in an earlier version the step
// reboot used sysrq unless it was soft.
func (h *Hosts) WarnOfPlans(at section.Pointer, planned func(step string) bool, say func(section.Pointer, string, ...any)) {
	if h.Sysrq && !planned("sysrq") {
		say(at.To("sysrq"), "no plan has the step sysrq, so Drydock never uses sysrq; the step reboot always uses systemctl reboot; add {step: sysrq, wait: 10m} after the step reboot, or remove this")
	}
}
