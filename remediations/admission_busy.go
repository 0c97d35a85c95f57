package remediations

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// occupation is the repair in flight on a node, as admission sees it.
type occupation struct {
	node string
	// record is in flight; nil: none that can be read is.
	record *Record
	// phase is what the label says.
	phase Phase
	// observed: the record's policy only observes now.
	observed bool
	// mesh is the repair of the leader of the node's location, recorded on another node; nil: there is none.
	mesh *occupation
}

// occupationOf reads the Node. Either the record or the label is enough: the ValidatingAdmissionPolicy, which cannot
// read records, goes by the label alone, and the two must say the same.
func (c *Config) occupationOf(n *corev1.Node) *occupation {
	if n == nil {
		return &occupation{}
	}
	b := &occupation{node: n.Name, record: InFlight(n), phase: Phase(n.Labels[PhaseLabel])}
	if b.record != nil {
		p := c.PolicyOf(b.record.Policy, n)
		b.observed = p != nil && p.Mode == ModeObserve
	}
	return b
}

func (b *occupation) inFlight() bool { return b.record != nil || b.phase.InFlight() }

// objects says that the change collides with the repair, and what the person may do instead.
func (b *occupation) objects(reason AdmissionReason, l lift, what string) *objection {
	o := &objection{reason: reason, lift: l, what: what, warns: b.observed}
	glass := fmt.Sprintf(`To break the glass: kubectl annotate node %s %s="<why>", and try again.`, b.node, BreakGlassKey)
	wait := fmt.Sprintf("To wait: kubectl drydock status -w, or kubectl get node %s -L %s -w.", b.node, PhaseLabel)
	r := b.record
	if r == nil {
		o.message = fmt.Sprintf("node %s is under repair: its label %s says %s, though no record on it can be read that says more; %s would collide with the repair. %s To end it: kubectl annotate node %s %s=true. %s",
			b.node, PhaseLabel, b.phase, what, wait, b.node, ResetKey, glass)
		return o
	}
	asked := ""
	if r.Cause.Request != "" {
		asked = ", which a person asked for,"
	}
	o.message = fmt.Sprintf("node %s is under repair %s%s by policy %s: %s, attempt %d, is %s since %s and over by %s at the latest; %s would collide with it. %s To cancel it: %s. %s",
		b.node, r.ID, asked, r.Policy, r.Step.Name, r.Step.Attempt, r.Phase, stamp(r.Since), stamp(r.Deadline), what, wait, howToCancel(b.node, r.ID), glass)
	return o
}

func howToCancel(node, id string) string {
	return fmt.Sprintf("kubectl drydock cancel %s, or kubectl annotate node %s %s=%s", node, node, CancelKey, id)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
