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
	// Verb says in a sentence what it does to a node: "would <verb> n1 now".
	Verb string
	// Disruptive remediations are bound by limits, breaker, windows and cooldown; the others have a limit of their own.
	Disruptive bool
	// Target is the kind of target that it repairs.
	Target Kind
	// Wait is how long its proof may take where no policy says, Attempts how often it is issued then. Of one that may be
	// repeated freely, Timeout is how long it may take.
	Wait, Timeout time.Duration
	Attempts      int
	// Invasive ranks the remediations, the mildest first: of two alerts on one node the milder plan goes first.
	Invasive int
	// Once remediations must reach the provider at most once an attempt; the others may be repeated freely.
	Once bool
	// LooksFirst: the provider is asked about the machine before the intent, so that what could only be refused costs no
	// attempt.
	LooksFirst bool
	// ClusterWide remediations change the whole cluster: one bad node is no reason for them, and the breaker is none against.
	ClusterWide bool
	// PassedOver: what could only be refused is passed over where another step follows; other plans wait for their provider, as long as no
	// later step has one that serves the Node.
	PassedOver bool
	// Restarts: the machine boots anew, and what runs on it needs time to come up.
	Restarts bool
	// RenewsLease: only a lease that was renewed after the intent shows that it cured anything.
	RenewsLease bool
	// AsksPods: its actuator is asked whether the pods that it had made anew are there (engine.PodProver). Replaces: it is asked what
	// became of the machine (engine.Replacer).
	AsksPods, Replaces bool
	// Refuses says why it is never done to the node, whatever a plan says; nil: it takes every node.
	Refuses func(n *corev1.Node) string
	// Proof is what shows, beyond the node being well and the alert gone, that this very step was what cured it. Every remediation of
	// nodes has one.
	Proof func(intent *Intent, n *NodeFacts, a Answers) (proven bool, missing string)
}

// shipped are the remediations that Drydock comes with, whether or not this installation can carry them out. A new one is one file
// and one line here.
var shipped = map[string]Remediation{
	"apply-cni":          applyCNI,
	"drain":              drain,
	"external":           external,
	"external-replace":   externalReplace,
	"mark-ready":         markReady,
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

// Shipped are the remediations that Drydock comes with, by name.
func Shipped() map[string]Remediation { return maps.Clone(shipped) }

// Registry is all that a plan may name: the shipped remediations, and what it holds beside them by name.
type Registry map[string]Remediation

// Of is the remediation of that name; ok: there is one.
func (g Registry) Of(name string) (r Remediation, ok bool) {
	if r, ok = g[name]; !ok {
		r, ok = shipped[name]
	}
	return r, ok
}

// Names are the names of all remediations, sorted.
func (g Registry) Names() []string {
	all := Shipped()
	maps.Copy(all, g)
	return slices.Sorted(maps.Keys(all))
}

// repairs says that some remediation is done to targets of the kind.
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

// Remediation is the one of that name; one without a name is not known.
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

// ShippedPolicies returns the policies that come with Drydock, as files in the form of the configuration's policies.
// Their order is internal/config's to decide.
func ShippedPolicies() fs.FS {
	sub, _ := fs.Sub(shippedPolicies, "policies") // it fails only for a name that is no path
	return sub
}
