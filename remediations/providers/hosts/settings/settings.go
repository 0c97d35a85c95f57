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

// Section defines the key providers.hosts of the configuration: its schema, its reader, and the
// steps that need it.
var Section = section.Section{
	Key: "hosts", Schema: schema, Read: section.Declared[Hosts](),
	Steps: map[string]string{"restart-kubelet": "", "restart-containerd": "", "restart-unit": ".units", "reboot": ".reboot", "sysrq": ".sysrq"},
}

// MaxAddresses is the largest number of addresses of a host. A host has at most an internal and an
// external address, each as IPv4 and IPv6.
const MaxAddresses = 4

// Hosts is the content of providers.hosts.
type Hosts struct {
	User string `json:"user"`
	Port int    `json:"port"`
	// KeyFile and KnownHostsFile are paths. Drydock reads both files again when they change.
	KeyFile        string `json:"keyFile" as:"file"`
	KnownHostsFile string `json:"knownHostsFile" as:"file"`
	// Sudo means that Drydock runs commands through sudo if they need root. Without Sudo, User must
	// be root.
	Sudo bool `json:"sudo"`
	// Timeout limits one command. It can be short, because a command only starts a restart. Drydock
	// then waits minutes for the proof.
	Timeout time.Duration `json:"timeout" most:"5m, a command only starts a restart"`
	// Kubelet and Containerd are the names of the systemd units of the kubelet and of containerd.
	// Units has further units that a step may restart.
	Kubelet    string   `json:"kubelet"`
	Containerd string   `json:"containerd"`
	Units      []string `json:"units"`
	// AddressTypes has the types of Node addresses that Drydock uses, the preferred ones first.
	AddressTypes []string `json:"addressTypes"`
	// Reboot and Sysrq allow the steps reboot and sysrq.
	Reboot bool `json:"reboot"`
	Sysrq  bool `json:"sysrq"`
	// NodeSelector selects the Nodes that the provider serves. A nil selector selects all Nodes
	// that no other provider claims.
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

// Serves implements section.Provider. The provider finds a host by the Node's addresses. So it does
// not matter which system provides the machine.
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

// WarnOfPlans implements section.Planned. It warns if Sysrq is true and no plan has the step sysrq.
// In an earlier version, the step reboot used sysrq, so such a configuration no longer does what it
// did.
func (h *Hosts) WarnOfPlans(at section.Pointer, planned func(step string) bool, say func(section.Pointer, string, ...any)) {
	if h.Sysrq && !planned("sysrq") {
		say(at.To("sysrq"), "no plan has the step sysrq, so Drydock never uses sysrq; the step reboot always uses systemctl reboot; add {step: sysrq, wait: 10m} after the step reboot, or remove this")
	}
}
