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
	// Whether it disrupts the target's work. The limits, breakers, windows and cooldowns apply only
	// then.
	Disruptive bool
	Target     Kind
	// The defaults of Step.Wait and Step.Timeout.
	Wait, Timeout time.Duration
	Attempts      int
	// A higher number is more invasive. If a node has two alerts, the less invasive plan comes
	// first.
	Invasive int
	// A call must reach the provider at most once for each attempt. All other remediations can be
	// repeated without harm.
	Once bool
	// The provider is asked about the machine before the intent is written. A step that the
	// provider would refuse then uses up no attempt.
	LooksFirst bool
	// The step changes the whole cluster. One bad node does not justify it, and an open breaker,
	// which means that many nodes are unhealthy, does not hold it.
	ClusterWide bool
	// The plan continues with its next step if the provider would refuse this one; otherwise the
	// repair waits for the provider. If no provider of this step serves the Node, the plan always
	// continues with a later step that has one.
	PassedOver bool
	// The step ends the present boot of the machine. Programs on it then need time to start again.
	Restarts bool
	// The step leaves the machine off. The provider must then be an engine.PowerProver.
	PowersOff bool
	// The proof needs a node lease that was renewed after the intent.
	RenewsLease bool
	// The proof needs the restarted pods to be Ready again. The provider must then be an
	// engine.PodProver.
	AsksPods bool
	// The step replaces the machine. The provider must then be an engine.Replacer.
	Replaces bool
	// Why this remediation is never carried out on the node, whatever the plan, or "". Nil refuses
	// no node.
	Refuses func(n *corev1.Node) string
	// Whether this step cured the node, or what is missing. Every cure also needs a node that is
	// well and an alert that is gone, which Proof does not check. Every remediation of nodes has a
	// Proof.
	Proof func(intent *Intent, n *NodeFacts, a Answers) (proven bool, missing string)
}

// By name, also those that this installation cannot carry out. A new remediation needs one file,
// and one line here.
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

// Registry has the remediations of an installation that are not part of Drydock, by name.
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

// ShippedPolicies returns the policies that are part of Drydock, one YAML file each. Package
// internal/config decides their order.
func ShippedPolicies() fs.FS {
	sub, _ := fs.Sub(shippedPolicies, "policies") // fs.Sub fails only for an invalid path
	return sub
}
