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
	// Verb is its action in a sentence: "would <verb> n1 now".
	Verb string
	// Disruptive remediations are bound by limits, breaker, windows and cooldown. The others have a
	// limit of their own.
	Disruptive bool
	// Target is the kind of target that the remediation repairs.
	Target Kind
	// Wait is how long the proof may take and Attempts how often the step is issued, if the policy
	// does not say. Timeout is how long a repeatable step may take.
	Wait, Timeout time.Duration
	Attempts      int
	// Invasive ranks the remediations, the least invasive first. Of two alerts on one node, the
	// less invasive plan goes first.
	Invasive int
	// Once remediations must reach the provider at most once per attempt. The others are
	// repeatable: they may be issued again freely.
	Once bool
	// LooksFirst: Drydock asks the provider about the machine before it writes the intent, so that
	// a certain refusal costs no attempt.
	LooksFirst bool
	// ClusterWide remediations change the whole cluster. One bad node does not justify them, and an
	// open breaker does not hold them.
	ClusterWide bool
	// PassedOver: a step that the provider would refuse is passed over if another step follows. A
	// step without PassedOver waits for its provider, unless a later step has a provider that
	// serves the Node.
	PassedOver bool
	// Restarts: the machine's boot ends, and what runs on it needs time to start again.
	Restarts bool
	// PowersOff: the machine stays off. The actuator is asked whether it is off
	// (engine.PowerProver).
	PowersOff bool
	// RenewsLease: only a lease that was renewed after the intent proves that the remediation cured
	// the node.
	RenewsLease bool
	// AsksPods: the actuator is asked whether the pods of the step were created again
	// (engine.PodProver). Replaces: the actuator is asked what happened to the machine
	// (engine.Replacer).
	AsksPods, Replaces bool
	// Refuses returns why the remediation is never done to the node, for any plan; nil: it accepts
	// every node.
	Refuses func(n *corev1.Node) string
	// Proof checks that this very step cured the node, in addition to the node being well and the
	// alert gone. Every remediation of nodes has one.
	Proof func(intent *Intent, n *NodeFacts, a Answers) (proven bool, missing string)
}

// shipped are the remediations that are part of Drydock, even if this installation cannot carry
// them out. A new one needs one file, and one line here.
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

// Registry has the remediations that were added to the shipped ones, by name. A plan may name both.
type Registry map[string]Remediation

// Of returns the remediation with the name; ok is false if it does not exist.
func (g Registry) Of(name string) (r Remediation, ok bool) {
	if r, ok = g[name]; !ok {
		r, ok = shipped[name]
	}
	return r, ok
}

// Names returns the names of all remediations, sorted.
func (g Registry) Names() []string {
	all := Shipped()
	maps.Copy(all, g)
	return slices.Sorted(maps.Keys(all))
}

// repairs reports whether any remediation has targets of the kind.
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

// Remediation returns the remediation with the name. An unknown one has an empty name.
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

// ShippedPolicies returns the policies that are part of Drydock, as files in the form of the
// configuration's policies. Package internal/config decides their order.
func ShippedPolicies() fs.FS {
	sub, _ := fs.Sub(shippedPolicies, "policies") // fs.Sub fails only for an invalid path
	return sub
}
