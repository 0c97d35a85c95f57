package signs

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
)

// Witness is what a node itself must show before Drydock may disrupt it for an alert. An alert
// alone can be forged, stale, or computed from forged metrics.
type Witness struct {
	// The policy acts on the alert alone.
	None bool
	// Before a step, at least one sign must be Ill. For a cure, all signs must be Well.
	Signs []Sign
	// The DaemonSet of the cluster's network, as namespace/name. It may be empty.
	Network string
}

// Kind is what a sign reads, for example a condition of the Node or its lease.
type Kind string

const (
	NotReady     Kind = "ready"
	StaleLease   Kind = "lease"
	Condition    Kind = "condition"
	MissingGPUs  Kind = "gpus"
	DaemonSetPod Kind = "daemonSetPod"
	NotRunning   Kind = "provider"
)

// Sign is one thing on or about the node that is checked.
type Sign struct {
	Kind Kind
	// Name is the type of the condition, or the DaemonSet as namespace/name. Status is the
	// condition's.
	Name, Status string
	// The key of the configuration that names the DaemonSet, if the policy itself does not.
	From string
	// The DaemonSet of the cluster's network, as namespace/name. It may be empty.
	Network string
	// A condition whose last heartbeat is older counts as missing data. Zero means that a condition
	// counts at any age.
	StaleAfter time.Duration
	// Nil means that every condition counts.
	Texts *Texts
}

// Answer is a sign's answer about a node.
type Answer string

const (
	Ill  Answer = "ill"
	Well Answer = "well"
	// Unknown means that there is no data, or that it cannot be compared. It is neither a fault nor a
	// cure.
	Unknown Answer = "unknown"
)

// Testimony is the answer of one sign, with details.
type Testimony struct {
	Answer Answer
	// A part of a sentence, for example "Ready is True since 2026-03-04T12:00:00Z".
	Saw string
	// For metrics: one of Reasons. Empty if the answer itself is enough.
	Reason string
	// When the sign was read outside of the Node. Zero for a part of the Node, for example a
	// condition.
	At time.Time
}

// Whole returns the signs of the witness and always NotReady: a node that is not Ready after a step
// is ill for every policy.
func (w *Witness) Whole() []Sign {
	if slices.ContainsFunc(w.Signs, func(s Sign) bool { return s.Kind == NotReady }) {
		return w.Signs
	}
	return append(slices.Clone(w.Signs), Sign{Kind: NotReady, Network: w.Network})
}

// Nothing else than the Node must be read for the sign.
func (s Sign) onNode() bool {
	switch s.Kind {
	case NotReady, Condition, MissingGPUs:
		return true
	case StaleLease, DaemonSetPod, NotRunning:
	}
	return s.Kind == DaemonSetPod && s.Name == "" // without the name of a DaemonSet there is nothing to read
}

// ask counts a condition at any age if now is zero.
func (s Sign) ask(n *corev1.Node, now time.Time) Testimony {
	switch s.Kind {
	case NotReady:
		return conditionSays(n, corev1.NodeReady, func(status corev1.ConditionStatus) Answer {
			if status == corev1.ConditionTrue {
				return Well
			}
			return Ill
		}).because(readyReason(n))
	case Condition:
		return s.askCondition(n, now)
	case MissingGPUs:
		return gpusSay(n)
	case DaemonSetPod:
		return Testimony{Answer: Unknown, Saw: s.From + " is not configured, so Drydock does not know which pod to check"}
	case StaleLease, NotRunning:
	}
	return Testimony{Answer: Unknown, Saw: fmt.Sprintf("%s was not read", s)}
}

func (s Sign) askCondition(n *corev1.Node, now time.Time) Testimony {
	t := conditionSays(n, corev1.NodeConditionType(s.Name), func(status corev1.ConditionStatus) Answer {
		if status == corev1.ConditionStatus(s.Status) {
			return Ill
		}
		if status == corev1.ConditionUnknown {
			return Unknown
		}
		return Well
	})
	c := conditionOf(n, corev1.NodeConditionType(s.Name))
	if c == nil {
		return t
	}
	if age := now.Sub(c.LastHeartbeatTime.Time); s.StaleAfter > 0 && !c.LastHeartbeatTime.IsZero() && age > s.StaleAfter {
		return Testimony{Answer: Unknown, Saw: fmt.Sprintf("%s, but nothing has confirmed it for %s (staleAfter: %s)", t.Saw, text.Age(age), text.Age(s.StaleAfter))}
	}
	if why := s.Texts.against(*c); t.Answer == Ill && why != "" {
		return Testimony{Answer: Unknown, Saw: t.Saw + ", but " + why}
	}
	return t
}

// StaleFrom returns when the first condition among the asked signs becomes too old to count. Zero
// means never. Conditions that are already too old do not matter.
func StaleFrom(asked []Sign, n *corev1.Node, now time.Time) (first time.Time) {
	for _, s := range asked {
		if s.Kind != Condition || s.StaleAfter == 0 {
			continue
		}
		c := conditionOf(n, corev1.NodeConditionType(s.Name))
		if c == nil || c.LastHeartbeatTime.IsZero() {
			continue
		}
		at := c.LastHeartbeatTime.Add(s.StaleAfter)
		if !at.Before(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

func (s Sign) String() string {
	switch s.Kind {
	case Condition:
		return fmt.Sprintf("condition %s=%s", s.Name, s.Status)
	case DaemonSetPod:
		return "the pod of DaemonSet " + s.Name
	case StaleLease:
		return "the lease of the node"
	case NotRunning:
		return "the provider's instance"
	case NotReady, MissingGPUs:
	}
	return string(s.Kind)
}

func conditionSays(n *corev1.Node, kind corev1.NodeConditionType, judge func(corev1.ConditionStatus) Answer) Testimony {
	c := conditionOf(n, kind)
	if c == nil {
		return Testimony{Answer: Unknown, Saw: fmt.Sprintf("the Node has no condition %s", kind)}
	}
	since := ""
	if !c.LastTransitionTime.IsZero() {
		since = " since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return Testimony{Answer: judge(c.Status), Saw: fmt.Sprintf("%s is %s%s", kind, c.Status, since)}
}

// LeaseSays returns the answer of a lease that was just read. It is Ill only if the same renewal
// time has been read for longer than the lease's duration. Until then a lease that is not fresh is
// Unknown.
func LeaseSays(l Lease) Testimony {
	t := Testimony{Answer: Well, At: l.ReadAt, Saw: "the lease of the node was renewed at " + l.RenewedAt.UTC().Format(time.RFC3339)}
	switch {
	case l.RenewedAt.IsZero():
		t.Answer, t.Saw = Unknown, "the lease of the node was never renewed"
	case l.Fresh():
		if age := l.ReadAt.Sub(l.RenewedAt); age > l.Duration || age < -leaseAhead {
			t.Saw += " by the node's clock, which is wrong, and the lease is renewed in time"
		}
	case l.Stands():
		t.Answer = Ill
		t.Saw += ", and not again while Drydock watched it for " + text.Duration(l.ReadAt.Sub(l.StoodFrom).Truncate(time.Second))
	default:
		t.Answer = Unknown
		if l.ReadAt.Before(l.RenewedAt) {
			t.Saw += ", which is in the future: one of the two clocks is wrong"
		}
		t.Saw += "; Drydock must watch the lease for " + l.Duration.String() + " to see whether it is renewed"
	}
	return t
}

type weighed struct {
	// Ill means that at least one sign is Ill. Well means that every sign is Well. Unread means
	// that at least one sign must still be read.
	Ill, Well, Unread bool
	Saw               []string
	// Said are the answers of the signs that were read.
	Said []Said
	// The oldest reading outside of the Node. Zero if no sign was read there.
	Oldest time.Time
}

// An agent may set only some of the conditions that a policy names, and a condition that it never
// sets is not a fault. So if the Node has at least one of these conditions, the ones that it lacks
// do not count.
func counted(signs []Sign, n *corev1.Node) []Sign {
	absent := func(s Sign) bool {
		return s.Kind == Condition && conditionOf(n, corev1.NodeConditionType(s.Name)) == nil
	}
	present := func(s Sign) bool { return s.Kind == Condition && !absent(s) }
	if !slices.ContainsFunc(signs, absent) || !slices.ContainsFunc(signs, present) {
		return signs
	}
	return slices.DeleteFunc(slices.Clone(signs), absent)
}

// IllSince returns what the first sign saw that has been Ill without interruption since before at,
// or "". Only a condition of the Node has the time of its last change, so all other signs are
// ignored.
func IllSince(asked []Sign, n *corev1.Node, at time.Time) string {
	for _, s := range asked {
		kind := corev1.NodeConditionType(s.Name)
		if s.Kind == NotReady {
			kind = corev1.NodeReady
		} else if s.Kind != Condition {
			continue
		}
		c := conditionOf(n, kind)
		if c == nil || c.LastTransitionTime.IsZero() || c.LastTransitionTime.After(at) {
			continue
		}
		if t := s.ask(n, time.Time{}); t.Answer == Ill {
			return t.Saw
		}
	}
	return ""
}

func conditionOf(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// Weigh combines the answers of the signs about the Node n. read has those from outside of the
// Node. A reading from before since counts as not read. If now is zero, a condition counts at any
// age.
func Weigh(signs []Sign, n *corev1.Node, read map[Sign]Testimony, since, now time.Time) weighed {
	w := weighed{Well: true}
	for _, s := range counted(signs, n) {
		t := Testimony{}
		if needed, reads := s.reads(n); reads {
			t = read[needed]
			if t.At.IsZero() || t.At.Before(since) {
				w.Unread, w.Well = true, false
				continue
			}
			if w.Oldest.IsZero() || t.At.Before(w.Oldest) {
				w.Oldest = t.At
			}
		}
		if s.onNode() {
			t = s.withPod(t, s.ask(n, now))
		}
		w.Ill, w.Well = w.Ill || t.Answer == Ill, w.Well && t.Answer == Well
		w.Saw, w.Said = append(w.Saw, t.Saw), append(w.Said, Said{s, t})
	}
	return w
}
