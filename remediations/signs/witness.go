package signs

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
)

// Witness is what must be true of a node itself before an alert may disrupt it. An alert alone can be forged, stale, or
// computed from forged metrics.
type Witness struct {
	// None: the policy acts on the alert alone.
	None bool
	// Signs: any of them that says Ill is enough for a step, and all of them must say Well for a cure.
	Signs []Sign
	// Network is the DaemonSet of the cluster's network, as namespace/name. Empty: it is not configured.
	Network string
}

// Kind is what an entry of a witness looks at.
type Kind string

const (
	NotReady     Kind = "ready"
	StaleLease   Kind = "lease"
	Condition    Kind = "condition"
	MissingGPUs  Kind = "gpus"
	DaemonSetPod Kind = "daemonSetPod"
	NotRunning   Kind = "provider"
)

// Sign is one entry of a witness.
type Sign struct {
	Kind Kind
	// Name is the type of the condition, or the DaemonSet as namespace/name; Status is the status of the condition.
	Name, Status string
	// From is the key of the configuration that names the DaemonSet, where the policy leaves that to the configuration.
	From string
	// Network is the DaemonSet of the cluster's network, as namespace/name. Empty: it is not configured.
	Network string
	// StaleAfter is the age from which a condition is no data, counted from its last heartbeat; zero: at any age it is data.
	StaleAfter time.Duration
	// Texts select the condition by what it says; nil: whatever it says.
	Texts *Texts
}

// Answer is what a sign says of a node.
type Answer string

const (
	Ill  Answer = "ill"
	Well Answer = "well"
	// Unknown: there is no data, or the data cannot be compared. That is neither a fault nor a cure.
	Unknown Answer = "unknown"
)

// Testimony is what one sign said.
type Testimony struct {
	Answer Answer
	// Saw is what was seen, as a part of a sentence: "Ready is True since 2026-03-04T12:00:00Z".
	Saw string
	// Reason tells answers of one kind apart, for metrics: one of Reasons. Empty: the answer tells all.
	Reason string
	// At is when it was read, for what the watched Node does not show.
	At time.Time
}

// Whole are the signs of the witness, and NotReady: a node that is not Ready after a step is ill, whatever else its policy looks at.
func (w *Witness) Whole() []Sign {
	if slices.ContainsFunc(w.Signs, func(s Sign) bool { return s.Kind == NotReady }) {
		return w.Signs
	}
	return append(slices.Clone(w.Signs), Sign{Kind: NotReady, Network: w.Network})
}

// onNode says that the watched Node itself shows the sign.
func (s Sign) onNode() bool {
	switch s.Kind {
	case NotReady, Condition, MissingGPUs:
		return true
	case StaleLease, DaemonSetPod, NotRunning:
	}
	return s.Kind == DaemonSetPod && s.Name == "" // nobody can look, and that needs no look
}

// ask is what the Node shows of the sign. now zero: nobody judges how old it is.
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
		return Testimony{Answer: Unknown, Saw: s.From + " is not configured, so Drydock does not know which pod to look at"}
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
	if age := now.Sub(c.LastHeartbeatTime.Time); s.StaleAfter > 0 && !now.IsZero() && !c.LastHeartbeatTime.IsZero() && age > s.StaleAfter {
		return Testimony{Answer: Unknown, Saw: fmt.Sprintf("%s, but nothing has confirmed it for %s (staleAfter: %s)", t.Saw, text.Age(age), text.Age(s.StaleAfter))}
	}
	if why := s.Texts.against(*c); t.Answer == Ill && why != "" {
		return Testimony{Answer: Unknown, Saw: t.Saw + ", but " + why}
	}
	return t
}

// StaleFrom is when the first of the Node's conditions that is data now is too old to be data; zero: none becomes too old.
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

// LeaseSays is what a lease says that was just read. A lease that is fresh by this clock is well at once. Any other one is judged by
// whether it moves between two readings.
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
		t.Saw += ", and not again while Drydock watched it for " + l.ReadAt.Sub(l.StoodFrom).Truncate(time.Second).String()
	default:
		t.Answer = Unknown
		if l.ReadAt.Before(l.RenewedAt) {
			t.Saw += ", which is in the future: one of the two clocks is wrong"
		}
		t.Saw += "; Drydock must watch the lease for " + l.Duration.String() + " to see whether it is renewed"
	}
	return t
}

// weighed is what all signs of a witness say together.
type weighed struct {
	// Ill: any sign says so. Well: every sign says so. Unread: a sign must be read first.
	Ill, Well, Unread bool
	Saw               []string
	// Said is what each sign said that was read.
	Said []Said
	// Oldest is when the oldest of the readings was made; zero: the Node shows all signs.
	Oldest time.Time
}

// counted leaves out the conditions that the Node does not have, where it has another one of the list: an agent sets some of the
// conditions that a policy names, and what it never sets is no data.
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

// IllSince is what the first sign saw that has said Ill without a change since the moment or longer, as the conditions of the Node show
// it; empty: none has, or the Node does not show since when.
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

// conditionOf is the node's condition of that type; nil: it has none.
func conditionOf(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// Weigh asks the signs. What was read before since counts as not read. now zero: nobody judges how old the Node's conditions are.
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
