package remediations

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/signs"
)

// Mode says how far Drydock may go.
type Mode string

const (
	// ModeOff leaves the policy's alerts alone.
	ModeOff Mode = "off"
	// ModeObserve decides and says what it would do, and does nothing to the node.
	ModeObserve Mode = "observe"
	// ModeEnforce repairs.
	ModeEnforce Mode = "enforce"
)

// Config is all of the configuration that a decision rests on. It is read once at start and never changes.
type Config struct {
	// Mode is what a policy does that says nothing of its own, and what a person's request for a remediation follows.
	Mode Mode
	// ClusterLabel and ClusterValue tell our alerts from another cluster's; an empty label: no check.
	ClusterLabel, ClusterValue string
	// Registry has the remediations that plans may name.
	Registry Registry
	// Kinds are the kinds of target that policies may be about, beside nodes.
	Kinds []*TargetKind
	// Policies in the order in which they are asked: the first that matches takes the alert.
	Policies []*Policy
	Limits   Limits
	Windows  []Window
	// MaxStaleness is how old Alertmanager's word may be when a side effect rests on it.
	MaxStaleness time.Duration
	// RequireAll makes an Alertmanager that does not answer a hold, even while another answers.
	RequireAll bool
	// Watchdog says that a replica's word counts only while it shows the Watchdog alert.
	Watchdog bool
	// SelfTest selects the alert that is always on its way here; none: it is not asked for. Receiver is how Alertmanager
	// names the receiver that posts to Drydock.
	SelfTest labels.Matchers
	Receiver string
	// Provided holds the names of the remediations that this installation can carry out.
	Provided map[string]bool
	// Providers say who carries out which of them on which Nodes.
	Providers []Provider
	// TopologyLabel is the Node's label that names its location in the mesh, where no annotation does.
	TopologyLabel string
	// SidecarProviders holds the names of the configured providers of sidecars.
	SidecarProviders map[string]bool
	// ControlPlaneHosts are the Nodes on whose hosts the API servers run, in the order in which they are tried. Without them
	// nothing is known of API servers.
	ControlPlaneHosts []string
	// Announce are the annotations that a Node has while it is under repair.
	Announce []string
	// Conditions: the Node's conditions say that it is under repair, too.
	Conditions bool
	// Reserves: before a disruptive step the node is taken for Drydock, where repair systems share which of them repairs it. Leases:
	// those of Medik8s do.
	Reserves, Leases bool
	// HoldWhen are the marks of other systems that hold repairs; nil: the shipped ones.
	HoldWhen marks.List
	// ClusterWide bounds the steps that change the whole cluster.
	ClusterWide ClusterWide
}

// Policy says what is done about one kind of alert.
type Policy struct {
	Name string
	// Match selects the alerts, all of them must match. NodeSelector selects the nodes; nil: all.
	Match        labels.Matchers
	NodeSelector k8slabels.Selector
	// Kind is what the policy is about, and Labels are the alert's labels that name it: the node; the pod's namespace and the pod;
	// the location of the mesh. Nothing names API servers.
	Kind   Kind
	Labels []string
	Mode   Mode
	// Witness is what must be true of the node itself, beside the alert; nil: the policy does not say, and repairs no node.
	Witness *signs.Witness
	// For is how long the alert must have been firing, beyond its rule's own for.
	For  time.Duration
	Plan []Step
	// ProofFor is how long a proof must hold without a break before it counts.
	ProofFor time.Duration
	// RelapseWindow is how long after a cure the alert counts as come back, so that the plan goes on; zero: it never does.
	RelapseWindow time.Duration
	// Cooldown is the least time between the end of a repair and the start of the next one of this policy on the node.
	Cooldown time.Duration
	// Approval makes the repair wait for a person before its first step.
	Approval bool
	// RepairCordoned lets the policy repair nodes that somebody else cordoned.
	RepairCordoned bool
	// CordonExhausted cordons a node on which a disruptive plan ran out.
	CordonExhausted bool
	// EndWhenWell is how long a node must be well without a break before its exhausted repair ends by itself; zero: it never does.
	EndWhenWell time.Duration
}

// Takes says whether the policy is for the node, by the node's labels as they are now. A GPU node counts as one with
// GPUCountLabel though it lost that label.
func (p *Policy) Takes(n *corev1.Node) bool {
	return p.NodeSelector == nil || p.NodeSelector.Matches(signs.LabelsOf(n))
}

// StepAt is the step of the plan that a record names; ok is false where the plan has another one at its place, or ends before it, and
// where the policy is nil.
func (p *Policy) StepAt(ref StepRef) (step Step, ok bool) {
	if p == nil || ref.Index >= len(p.Plan) || p.Plan[ref.Index].Name != ref.Name {
		return Step{}, false
	}
	return p.Plan[ref.Index], true
}

// Moved says that the plan was edited, so that the step on record is not the plan's at its place any more, though the plan goes that
// far or has the step elsewhere.
func (p *Policy) Moved(ref StepRef) bool {
	if _, there := p.StepAt(ref); there {
		return false
	}
	return ref.Index < len(p.Plan) || slices.ContainsFunc(p.Plan, func(s Step) bool { return s.Name == ref.Name })
}

// Step is one step of a plan.
type Step struct {
	// Name is a remediation's name out of Registry.
	Name string
	// Wait is how long the step's proof may take to appear after the step was issued.
	Wait time.Duration
	// Attempts is how often the step may be issued, at least 1.
	Attempts int
	// Provider is the sidecar provider that a mark-ready goes to.
	Provider string
	// Unit is the unit that a restart-unit restarts, DaemonSet the one that a rollout-restart does, as namespace/name.
	Unit, DaemonSet string
	// Template is what an external remediator is asked by; only of external and external-replace.
	Template Template
	// Soft makes the first attempt of a reboot ask the machine's operating system; the others cut its power.
	Soft bool
	// Timeout and ContinueOnTimeout bound a repeatable step, such as drain. Timeout bounds a rescue of the API servers, too,
	// from its first restart on.
	Timeout           time.Duration
	ContinueOnTimeout bool
	// ContinueUnreachable: the plan goes on with the next step where the provider stays unreachable, instead of waiting for it. It is left
	// out of the digest that a person approves where it is not set.
	ContinueUnreachable bool `json:",omitempty"`
	// WithoutController is what a drain does with pods that have no controller. It is left out of the digest that a person
	// approves where it is the default, so that the digests of older plans stay the same.
	WithoutController WithoutController `json:",omitempty"`
}

// StepOn is what those are asked about who know a machine before a step: the step's remediation, and what of the machine it would
// be done to, where only the plan says it.
type StepOn struct {
	Name, Unit, DaemonSet string
	Template              Template
}

// On is what the step does, and to what.
func (s Step) On() StepOn { return StepOn{s.Name, s.Unit, s.DaemonSet, s.Template} }

func (s StepOn) String() string {
	return strings.TrimSpace(s.Name + " " + s.Unit + s.DaemonSet + s.Template.String())
}

// Kept are the annotations of other systems that must be read of each Node.
func (c *Config) Kept() []string {
	return append(c.HoldWhen.Keys(marks.Annotation), c.Announce...)
}

// Policy returns the policy of that name, or nil.
func (c *Config) Policy(name string) *Policy {
	for _, p := range c.Policies {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Wants says whether any policy could want an alert with these labels, whichever node it names. An alert of another cluster is wanted
// by no policy.
func (c *Config) Wants(alert map[string]string) bool {
	if c.OfAnother(alert) {
		return false
	}
	for _, p := range c.Policies {
		if p.Mode != ModeOff && c.Serves(p) && p.Matches(alert) {
			return true
		}
	}
	return false
}

const (
	// RemediationLabel is the label by which a rule's author names the policy, and noRemediation its value for an alert that is for people.
	RemediationLabel, noRemediation = "remediation", "none"
)

// Meant says that whoever wrote the rule of an alert with these labels meant it for this cluster's Drydock, whether a policy wants it or not.
func (c *Config) Meant(alert map[string]string) bool {
	meant := alert[RemediationLabel]
	return meant != "" && meant != noRemediation && !c.OfAnother(alert) && !c.IsSelfTest(alert)
}

// OfAnother says that an alert with these labels is about another cluster.
func (c *Config) OfAnother(alert map[string]string) bool {
	return c.ClusterLabel != "" && alert[c.ClusterLabel] != c.ClusterValue
}

// Matches says that the policy selects alerts with these labels.
func (p *Policy) Matches(alert map[string]string) bool { return matches(p.Match, alert) }

// IsSelfTest says that an alert with these labels is this cluster's self-test: it is about no node.
func (c *Config) IsSelfTest(alert map[string]string) bool {
	return len(c.SelfTest) > 0 && !c.OfAnother(alert) && matches(c.SelfTest, alert)
}

// Serves says that the policy's alerts can be taken at all: without its provider nobody may look at pods, at the mesh, or at
// the control plane's hosts.
func (c *Config) Serves(p *Policy) bool {
	if p.Kind == KindNode {
		return true
	}
	served := c.kind(p.Kind).Served
	return len(p.Plan) > 0 && c.Provides(p.Plan[0]) && (served == nil || served(c))
}

// Provides says that this installation can carry the step out.
func (c *Config) Provides(s Step) bool {
	return c.Provided[s.Name] && (s.Name != markReady.Name || c.SidecarProviders[s.Provider])
}

// Names says whether an alert with these labels is about the node, by any policy. An alert of another cluster is about a node there,
// even if that has the same name.
func (c *Config) Names(alert map[string]string, node string) bool {
	if c.OfAnother(alert) {
		return false
	}
	for _, p := range c.Policies {
		if p.Mode == ModeOff || p.Kind != KindNode || !p.Matches(alert) {
			continue
		}
		if name, err := nodeName(p, alert); err == nil && name == node {
			return true
		}
	}
	return false
}

// NodeLabels are the labels of alerts by which policies know the node.
func (c *Config) NodeLabels() (out []string) {
	for _, p := range c.Policies {
		if p.Kind == KindNode && len(p.Labels) == 1 && !slices.Contains(out, p.Labels[0]) {
			out = append(out, p.Labels[0])
		}
	}
	return out
}

// matches is Matchers.Matches without a copy of the labels.
func matches(all labels.Matchers, alert map[string]string) bool {
	for _, m := range all {
		if !m.Matches(alert[m.Name]) {
			return false
		}
	}
	return true
}
