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

// Mode is how much Drydock may do for a policy.
type Mode string

const (
	// ModeOff means that Drydock ignores the policy's alerts.
	ModeOff Mode = "off"
	// ModeObserve means that Drydock decides and reports what a repair would do, but repairs nothing.
	ModeObserve Mode = "observe"
	// ModeEnforce means that Drydock repairs.
	ModeEnforce Mode = "enforce"
)

// Config is the part of the configuration that decisions depend on. It is read once at the start
// and never changes.
type Config struct {
	// The mode of policies that set none, and of a person's request for a remediation.
	Mode Mode
	// If ClusterLabel is empty, all alerts count as this cluster's.
	ClusterLabel, ClusterValue string
	Registry                   Registry
	// The kinds of target besides nodes.
	Kinds []*TargetKind
	// Policies are in order of precedence: the first policy that matches an alert takes it.
	Policies []*Policy
	Limits   Limits
	Windows  []Window
	// The greatest age of an Alertmanager's answer that a call may depend on.
	MaxStaleness time.Duration
	// With RequireAll, one Alertmanager without an answer holds all repairs.
	RequireAll bool
	// With Watchdog, an Alertmanager's answer counts only while it has the Watchdog alert.
	Watchdog bool
	// Selects the alert that always fires and so tests the path from Prometheus to Drydock. Empty
	// if there is none.
	SelfTest labels.Matchers
	// Receiver is the name of Drydock's receiver in Alertmanager's configuration.
	Receiver string
	Provided map[string]bool
	// Providers are the outside systems that carry out remediations, with the Nodes that each serves.
	Providers []Provider
	// The Node label with the node's location in the mesh, if no annotation names it.
	TopologyLabel string
	// SidecarProviders has the names of the configured providers of sidecars.
	SidecarProviders map[string]bool
	// The Nodes that run the API servers. A rescue tries them in this order. If the list is empty,
	// Drydock never repairs API servers.
	ControlPlaneHosts []string
	// Announce are the annotations that Drydock sets on a Node during a repair of the Node, so that
	// other systems see the repair.
	Announce []string
	// Whether a repair is also shown in the Node's conditions.
	Conditions bool
	// Reserves means that a node must be reserved before a disruptive step, because other repair
	// systems work on the same nodes. With Leases this is done with the Lease that Medik8s uses.
	Reserves, Leases bool
	// What holds the repair of a Node: marks that people and other systems set. Nil means the list
	// that Drydock ships.
	HoldWhen marks.List
	// ClusterWide bounds the steps that change the whole cluster.
	ClusterWide ClusterWide
}

// Policy says what Drydock does about one kind of alert.
type Policy struct {
	Name string
	// All matchers must match.
	Match labels.Matchers
	// Nil means all nodes.
	NodeSelector k8slabels.Selector
	// Kind is the kind of the policy's targets.
	Kind Kind
	// Labels are the alert's labels that name the target: the node, the pod's namespace and the
	// pod, or the mesh location. For API servers the list is empty.
	Labels []string
	Mode   Mode
	// The signs on the node itself that must confirm the alert before a repair. If it is nil, the
	// policy repairs no node.
	Witness *signs.Witness
	// How long the alert must have been firing, in addition to the `for` of its rule.
	For  time.Duration
	Plan []Step
	// ProofFor is how long the proof of a cure must last without interruption before it counts.
	ProofFor time.Duration
	// If the alert returns within this time after a cure, the next repair continues the plan with
	// its next step. Zero means that every repair starts with the first step.
	RelapseWindow time.Duration
	// The shortest time from the end of a repair of the node to the start of this policy's next
	// one.
	Cooldown time.Duration
	// Approval makes the repair wait for a person's approval before its first step.
	Approval bool
	// RepairCordoned reports whether the policy also repairs nodes that someone else has cordoned.
	RepairCordoned bool
	// CordonExhausted reports whether Drydock cordons a node when a disruptive plan has failed with
	// all of its steps.
	CordonExhausted bool
	// How long a node must be well without interruption until Drydock itself ends the node's
	// exhausted repair. Zero means that only a person can end it.
	EndWhenWell time.Duration
}

// Takes reports whether the policy selects the node by its current labels. A GPU node that has lost
// the label GPUCountLabel still counts as having it.
func (p *Policy) Takes(n *corev1.Node) bool {
	return p.NodeSelector == nil || p.NodeSelector.Matches(signs.LabelsOf(n))
}

// StepAt returns the step of the plan that a record refers to. ok is false if the plan no longer
// has that step at that index.
func (p *Policy) StepAt(ref StepRef) (step Step, ok bool) {
	if p == nil || ref.Index >= len(p.Plan) || p.Plan[ref.Index].Name != ref.Name {
		return Step{}, false
	}
	return p.Plan[ref.Index], true
}

// Moved reports whether an edit of the plan moved the record's step: another step is now at its
// index, or the step is now at another index. Moved returns false if the edit only removed the step
// from the end of the plan.
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
	// How long the step's proof may take to appear after the step was issued.
	Wait time.Duration
	// Attempts is how often the step may be issued, at least 1.
	Attempts int
	// Provider is the name of the sidecar provider, for the step mark-ready.
	Provider string
	// Unit is the systemd unit to restart, for the step restart-unit.
	Unit string
	// As namespace/name, for the step rollout-restart.
	DaemonSet string
	// Template is the template for an external remediator, for the steps external and
	// external-replace.
	Template Template
	// Whether the first attempt of a reboot goes through the operating system. All other attempts
	// cut the power.
	Soft bool
	// How long a repeatable step, for example drain, may take. For the API servers: how long a
	// rescue may take from its first restart.
	Timeout time.Duration
	// ContinueOnTimeout reports whether the plan continues after a drain that timed out.
	ContinueOnTimeout bool
	// Whether the plan continues while the step's provider is unreachable; otherwise the repair
	// waits. A person approves a digest of the plan, so false is omitted: the digests of older
	// plans stay the same.
	ContinueUnreachable bool `json:",omitempty"`
	// The digest's JSON omits the default.
	WithoutController WithoutController `json:",omitempty"`
}

// StepOn identifies a step for a provider. At most one of Unit, DaemonSet and Template is set.
type StepOn struct {
	Name, Unit, DaemonSet string
	Template              Template
}

// On returns the part of the step that identifies it for a provider.
func (s Step) On() StepOn { return StepOn{s.Name, s.Unit, s.DaemonSet, s.Template} }

func (s StepOn) String() string {
	return strings.TrimSpace(s.Name + " " + s.Unit + s.DaemonSet + s.Template.String())
}

// Kept returns the keys of other systems' annotations that decisions read on a Node. The cache of
// Nodes must keep them.
func (c *Config) Kept() []string {
	return append(c.HoldWhen.Keys(marks.Annotation), c.Announce...)
}

// Policy returns the policy with the name, or nil.
func (c *Config) Policy(name string) *Policy {
	for _, p := range c.Policies {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Wants reports whether an alert with these labels matches a policy that is not off and that this
// installation can serve. It does not check whether the policy selects the alert's node. It returns
// false for an alert of another cluster.
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
	// The alert label that names the policy, and its value for an alert that only people handle.
	RemediationLabel, noRemediation = "remediation", "none"
)

// Meant reports whether the alert's rule names a policy of this cluster, existing or not, in the
// label remediation.
func (c *Config) Meant(alert map[string]string) bool {
	meant := alert[RemediationLabel]
	return meant != "" && meant != noRemediation && !c.OfAnother(alert) && !c.IsSelfTest(alert)
}

// OfAnother reports whether an alert with these labels is about another cluster.
func (c *Config) OfAnother(alert map[string]string) bool {
	return c.ClusterLabel != "" && alert[c.ClusterLabel] != c.ClusterValue
}

// Matches reports whether the policy selects alerts with these labels. No policy selects
// EndedAlert, which Drydock itself posts.
func (p *Policy) Matches(alert map[string]string) bool {
	return alert[model.AlertNameLabel] != EndedAlert && matches(p.Match, alert)
}

// IsSelfTest reports whether an alert with these labels is this cluster's self-test alert. That
// alert is not about a node.
func (c *Config) IsSelfTest(alert map[string]string) bool {
	return len(c.SelfTest) > 0 && !c.OfAnother(alert) && matches(c.SelfTest, alert)
}

// Serves reports whether this installation can handle the policy's alerts. It always can for alerts
// about nodes.
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

// Names reports whether any policy reads this node's name from the alert's labels. It returns false
// for an alert of another cluster, which may have a node of the same name.
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

// NodeLabels returns the names of the alert labels that policies read the node's name from.
func (c *Config) NodeLabels() (out []string) {
	for _, p := range c.Policies {
		if p.Kind == KindNode && len(p.Labels) == 1 && !slices.Contains(out, p.Labels[0]) {
			out = append(out, p.Labels[0])
		}
	}
	return out
}

// Unlike Matchers.Matches, it does not copy the labels.
func matches(all labels.Matchers, alert map[string]string) bool {
	for _, m := range all {
		if !m.Matches(alert[m.Name]) {
			return false
		}
	}
	return true
}
