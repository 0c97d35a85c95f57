package remediations

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/signs"
)

// Mode is how much Drydock may do.
type Mode string

const (
	// ModeOff ignores the policy's alerts.
	ModeOff Mode = "off"
	// ModeObserve decides, and reports what a repair would do. It changes nothing on the node.
	ModeObserve Mode = "observe"
	// ModeEnforce repairs.
	ModeEnforce Mode = "enforce"
)

// Config is all of the configuration that a decision depends on. It is read once at the start and
// never changes.
type Config struct {
	// Mode is the mode of policies without a mode of their own, and of a person's request for a
	// remediation.
	Mode Mode
	// ClusterLabel and ClusterValue distinguish this cluster's alerts from another cluster's. An
	// empty label: no check.
	ClusterLabel, ClusterValue string
	// Registry has the remediations that plans may name.
	Registry Registry
	// Kinds are the kinds of target that policies may have, beside nodes.
	Kinds []*TargetKind
	// Policies are in order of precedence: the first policy that matches takes the alert.
	Policies []*Policy
	Limits   Limits
	Windows  []Window
	// MaxStaleness is how old an answer of Alertmanager may be when a side effect depends on it.
	MaxStaleness time.Duration
	// RequireAll makes each Alertmanager that does not answer hold repairs, even while another
	// answers.
	RequireAll bool
	// Watchdog makes the answer of an Alertmanager replica count only while it shows the Watchdog
	// alert.
	Watchdog bool
	// SelfTest selects the alert that always fires to test the path to Drydock; none: no self-test
	// is configured. Receiver is Alertmanager's name for the receiver that posts to Drydock.
	SelfTest labels.Matchers
	Receiver string
	// Provided holds the names of the remediations that this installation can carry out.
	Provided map[string]bool
	// Providers are the systems that carry out these remediations, with the Nodes that each serves.
	Providers []Provider
	// TopologyLabel is the Node label that names the Node's location in the mesh, if no annotation
	// names it.
	TopologyLabel string
	// SidecarProviders holds the names of the configured providers of sidecars.
	SidecarProviders map[string]bool
	// ControlPlaneHosts are the Nodes whose hosts run the API servers, in the order of a rescue's
	// attempts. Without them Drydock knows nothing of API servers.
	ControlPlaneHosts []string
	// Announce are the annotations that a Node has while it is under repair.
	Announce []string
	// Conditions makes the Node's conditions show a repair, too.
	Conditions bool
	// Reserves makes Drydock reserve the node before a disruptive step, where several repair
	// systems share nodes. Leases: the Leases of Medik8s make the reservation.
	Reserves, Leases bool
	// HoldWhen are the marks of other systems that hold repairs; nil: the shipped marks.
	HoldWhen marks.List
	// ClusterWide bounds the steps that change the whole cluster.
	ClusterWide ClusterWide
}

// Policy is what Drydock does about one kind of alert.
type Policy struct {
	Name string
	// Match selects the alerts: all matchers must match. NodeSelector selects the nodes; nil: all
	// nodes.
	Match        labels.Matchers
	NodeSelector k8slabels.Selector
	// Kind is the kind of the policy's target. Labels are the alert's labels that name the target:
	// the node, the pod's namespace and the pod, or the mesh's location. API servers have no such
	// label.
	Kind   Kind
	Labels []string
	Mode   Mode
	// Witness is what must be true of the node itself, beside the alert. With nil the policy
	// repairs no node.
	Witness *signs.Witness
	// For is how long the alert must have been firing, in addition to the `for` of its rule.
	For  time.Duration
	Plan []Step
	// ProofFor is how long a proof must hold without interruption before it counts.
	ProofFor time.Duration
	// RelapseWindow is how long after a cure a returning alert continues the plan; zero: it never
	// does.
	RelapseWindow time.Duration
	// Cooldown is the least time between the end of a repair and the start of this policy's next
	// repair of the node.
	Cooldown time.Duration
	// Approval makes the repair wait for a person's approval before its first step.
	Approval bool
	// RepairCordoned lets the policy repair nodes that Drydock did not cordon itself.
	RepairCordoned bool
	// CordonExhausted makes Drydock cordon a node after all steps of a disruptive plan failed.
	CordonExhausted bool
	// EndWhenWell is how long a node must be well without interruption before its exhausted repair
	// ends by itself; zero: it never does.
	EndWhenWell time.Duration
}

// Takes reports whether the policy selects the node by its current labels. A GPU node that lost
// GPUCountLabel still counts as a node with that label.
func (p *Policy) Takes(n *corev1.Node) bool {
	return p.NodeSelector == nil || p.NodeSelector.Matches(signs.LabelsOf(n))
}

// StepAt returns the step of the plan that a record names. ok is false if the policy is nil, if the
// plan has no step at that index, or if it has another step there.
func (p *Policy) StepAt(ref StepRef) (step Step, ok bool) {
	if p == nil || ref.Index >= len(p.Plan) || p.Plan[ref.Index].Name != ref.Name {
		return Step{}, false
	}
	return p.Plan[ref.Index], true
}

// Moved reports whether an edit of the plan moved the step on record: the plan has another step at
// its index, or has the step elsewhere.
func (p *Policy) Moved(ref StepRef) bool {
	if _, there := p.StepAt(ref); there {
		return false
	}
	return ref.Index < len(p.Plan) || slices.ContainsFunc(p.Plan, func(s Step) bool { return s.Name == ref.Name })
}

// Step is one step of a plan.
type Step struct {
	// Name is the name of a remediation in Registry.
	Name string
	// Wait is how long the step's proof may take to appear after the step was issued.
	Wait time.Duration
	// Attempts is how often the step may be issued, at least 1.
	Attempts int
	// Provider is the sidecar provider that a mark-ready calls.
	Provider string
	// Unit is the unit that restart-unit restarts. DaemonSet is the one that rollout-restart
	// restarts, as namespace/name.
	Unit, DaemonSet string
	// Template is the template for an external remediator. Only external and external-replace have
	// it.
	Template Template
	// Soft makes the first attempt of a reboot go through the machine's operating system. Later
	// attempts cut its power.
	Soft bool
	// Timeout and ContinueOnTimeout bound a step that takes several passes, for example drain.
	// Timeout also bounds a rescue of the API servers, from its first restart on.
	Timeout           time.Duration
	ContinueOnTimeout bool
	// ContinueUnreachable makes the plan continue with the next step while the provider stays
	// unreachable, instead of waiting for it. If false, it is not part of the digest that a person
	// approves.
	ContinueUnreachable bool `json:",omitempty"`
	// WithoutController is what a drain does with pods that have no controller. The default is not
	// part of the digest that a person approves, so that the digests of older plans stay the same.
	WithoutController WithoutController `json:",omitempty"`
}

// StepOn is what Drydock asks a provider about before a step: the remediation, and the part of the
// machine that the plan names.
type StepOn struct {
	Name, Unit, DaemonSet string
	Template              Template
}

// On returns the step's remediation and what the step acts on.
func (s Step) On() StepOn { return StepOn{s.Name, s.Unit, s.DaemonSet, s.Template} }

func (s StepOn) String() string {
	return strings.TrimSpace(s.Name + " " + s.Unit + s.DaemonSet + s.Template.String())
}

// Kept returns the annotations of other systems that must be read on each Node.
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

// Wants reports whether any policy could take an alert with these labels, for any node. No policy
// takes another cluster's alert.
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
	// RemediationLabel is the label that a rule's author sets to name the policy. noRemediation is
	// its value for an alert that only people handle.
	RemediationLabel, noRemediation = "remediation", "none"
)

// Meant reports whether the author of the alert's rule meant it for this cluster's Drydock. It does
// not matter whether a policy takes the alert.
func (c *Config) Meant(alert map[string]string) bool {
	meant := alert[RemediationLabel]
	return meant != "" && meant != noRemediation && !c.OfAnother(alert) && !c.IsSelfTest(alert)
}

// OfAnother reports whether an alert with these labels is about another cluster.
func (c *Config) OfAnother(alert map[string]string) bool {
	return c.ClusterLabel != "" && alert[c.ClusterLabel] != c.ClusterValue
}

// Matches reports whether the policy selects alerts with these labels. No policy selects the alert
// that Drydock posts at the end of a repair.
func (p *Policy) Matches(alert map[string]string) bool {
	return alert[model.AlertNameLabel] != EndedAlert && matches(p.Match, alert)
}

// IsSelfTest reports whether an alert with these labels is this cluster's self-test. The self-test
// is not about a node.
func (c *Config) IsSelfTest(alert map[string]string) bool {
	return len(c.SelfTest) > 0 && !c.OfAnother(alert) && matches(c.SelfTest, alert)
}

// Serves reports whether Drydock can take the policy's alerts at all. Without the step's provider
// Drydock cannot observe pods, the mesh or the control plane's hosts.
func (c *Config) Serves(p *Policy) bool {
	if p.Kind == KindNode {
		return true
	}
	served := c.kind(p.Kind).Served
	return len(p.Plan) > 0 && c.Provides(p.Plan[0]) && (served == nil || served(c))
}

// Provides reports whether this installation can carry out the step.
func (c *Config) Provides(s Step) bool {
	return c.Provided[s.Name] && (s.Name != markReady.Name || c.SidecarProviders[s.Provider])
}

// Names reports whether an alert with these labels is about the node, for any policy. An alert of
// another cluster is about a node there, even if the names are equal.
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

// NodeLabels returns the alert labels that policies read the node's name from.
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
