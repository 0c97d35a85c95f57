package remediations

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Remediation is one kind of step that a plan can name.
type Remediation struct {
	Name string
	// Verb is the action in a message, for example "reboot" in "would reboot n1 now".
	Verb string
	// Disruptive reports whether the remediation disrupts the target's work. The limits, breakers,
	// windows and cooldowns apply only to disruptive remediations.
	Disruptive bool
	// Target is the kind of target that the remediation repairs.
	Target Kind
	// Wait is the default of Step.Wait. Timeout is the default of Step.Timeout.
	Wait, Timeout time.Duration
	// Attempts is the default of Step.Attempts.
	Attempts int
	// Invasive is the rank of the remediation: a higher number is more invasive. If a node has two
	// alerts, Drydock first repairs the one with the less invasive plan.
	Invasive int
	// Once reports whether a call must reach the provider at most once for each attempt. All other
	// remediations are repeatable: repeating their call does no harm.
	Once bool
	// LooksFirst reports whether Drydock asks the provider about the machine before it writes the
	// intent. A step that the provider would refuse then uses up no attempt.
	LooksFirst bool
	// ClusterWide reports whether the remediation changes the whole cluster. One bad node does not
	// justify such a step. An open breaker, which means that many nodes are unhealthy, does not hold
	// it.
	ClusterWide bool
	// PassedOver reports whether the plan continues with its next step if the provider would refuse
	// this step. Otherwise the repair waits for the provider. But if no provider of this step
	// serves the Node, the plan still continues with a later step that has one.
	PassedOver bool
	// Restarts reports whether the step ends the present boot of the machine. Programs on the machine
	// then need time to start again.
	Restarts bool
	// PowersOff reports whether the step leaves the machine off. The provider must then be an
	// engine.PowerProver.
	PowersOff bool
	// RenewsLease reports whether the proof of the cure needs a node lease that was renewed after
	// the intent.
	RenewsLease bool
	// AsksPods reports whether the proof needs the pods that the step restarts to be Ready again. The
	// provider must then be an engine.PodProver.
	AsksPods bool
	// Replaces reports whether the step replaces the machine. The provider must then be an
	// engine.Replacer.
	Replaces bool
	// Refuses returns why Drydock never carries out this remediation on the node, whatever the
	// plan. It returns "" if Drydock may. If Refuses is nil, no node is refused.
	Refuses func(n *corev1.Node) string
	// Proof reports whether this step cured the node, or what is missing for this proof. Every cure
	// also needs a node that is well and an alert that is gone; Proof does not check these. Every
	// remediation of nodes has a Proof.
	Proof func(intent *Intent, n *NodeFacts, a Answers) (proven bool, missing string)
}

// shipped has the remediations that are part of Drydock, by name, also those that this installation
// cannot carry out. A new remediation needs one file, and one line here.
var shipped = map[string]Remediation{
	"apply-cni":          applyCNI,
	"drain":              drain,
	"external":           external,
	"external-replace":   externalReplace,
	"mark-ready":         markReady,
	"powerOff":           powerOff,
	"promote-leader":     promoteLeader,
	"reboot":             reboot,
	"replace":            replace,
	"restart-cni":        restartCNI,
	"restart-containerd": restartContainerd,
	"restart-kube-proxy": restartKubeProxy,
	"restart-kubelet":    restartKubelet,
	"restart-unit":       restartUnit,
	"rollout-restart":    rolloutRestart,
	"sysrq":              sysrq,
}

// Shipped returns the remediations that are part of Drydock, by name.
func Shipped() map[string]Remediation { return maps.Clone(shipped) }

// Registry has the remediations of an installation that are not part of Drydock, by name. A plan
// may name these and the shipped ones.
type Registry map[string]Remediation

// Of returns the remediation with the name. ok is false if there is none.
func (g Registry) Of(name string) (r Remediation, ok bool) {
	if r, ok = g[name]; !ok {
		r, ok = shipped[name]
	}
	return r, ok
}

// Names returns the sorted names of all remediations, including the shipped ones.
func (g Registry) Names() []string {
	all := Shipped()
	maps.Copy(all, g)
	return slices.Sorted(maps.Keys(all))
}

// repairs reports whether any remediation repairs targets of the kind.
func (g Registry) repairs(kind Kind) bool {
	is := func(all map[string]Remediation) bool {
		for _, r := range all {
			if r.Target == kind {
				return true
			}
		}
		return false
	}
	return is(shipped) || is(g)
}

// Remediation returns the remediation with the name, or a zero Remediation if there is none.
func (c *Config) Remediation(name string) Remediation {
	var g Registry
	if c != nil {
		g = c.Registry
	}
	r, _ := g.Of(name)
	return r
}

//go:embed policies/*.yaml
var shippedPolicies embed.FS

// ShippedPolicies returns the policies that are part of Drydock: one YAML file each, in the form of
// the configuration. Package internal/config decides their order.
func ShippedPolicies() fs.FS {
	sub, _ := fs.Sub(shippedPolicies, "policies") // fs.Sub fails only for an invalid path
	return sub
}
