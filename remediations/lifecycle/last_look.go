package lifecycle

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/signs"
)

// LetsAct returns an error if a person or another system forbids the call by a mark on the Node.
// holdWhen lists the marks of other systems. decided is when Drydock decided to make the call: a
// mark that was too old then to hold the repair does not stop the call either.
func LetsAct(holdWhen marks.List, n *corev1.Node, j remediations.Journal, decided time.Time) error {
	if remediations.Excluded(n) {
		return remediations.Withhold(remediations.ReasonExcluded, "the node was excluded by the label %s", remediations.ExcludeLabel)
	}
	if why := holdWhen.Leaving(n, j, decided); why != "" {
		return remediations.Withhold(remediations.ReasonNodeLeaving, "%s", why)
	}
	// The decision has already removed a pause that has ended. Any other pause stops the call,
	// whatever its value.
	for _, key := range []string{remediations.BreakGlassKey, remediations.PauseKey} {
		if _, ok := n.Annotations[key]; ok {
			return remediations.Withhold(remediations.ReasonPaused, "%s was set in the meantime", key)
		}
	}
	if _, ok := n.Annotations[remediations.CancelKey]; ok {
		return remediations.Withhold(remediations.ReasonCallWithheld, "%s was set in the meantime", remediations.CancelKey)
	}
	return nil
}

// MayStillRepair returns an error if the Node has changed since the decision in a way that forbids
// the call. It is called right before the call. key is the annotation with the target's record.
func MayStillRepair(c *remediations.Config, n *corev1.Node, key, intentID string) error {
	j := c.Registry.ReadJournal(n)
	r := j.Records[key]
	if r == nil || r.Phase != remediations.PhaseActing || r.Intent.ID != intentID {
		return remediations.Withhold(remediations.ReasonCallWithheld, "the intent %s is no longer on record", intentID)
	}
	if j.Record != nil && j.Record.Phase.InFlight() {
		return remediations.Withhold(remediations.ReasonNodeUnderRepair, "the node came under repair %s", j.Record.ID)
	}
	if j.Malformed != nil {
		return remediations.Withhold(remediations.ReasonNodeUnderRepair, "a record on the node cannot be read: %w", j.Malformed)
	}
	for _, other := range j.OtherRepairs {
		if !other.Shares() && other != r {
			return remediations.Withhold(remediations.ReasonNodeUnderRepair, "the node came under repair %s", other.ID)
		}
	}
	return LetsAct(c.HoldWhen, n, j, r.Intent.At)
}

// StillWitnessed returns an error if no sign shows the fault any more. read has the signs that were
// read for this check.
func StillWitnessed(n *corev1.Node, asked []signs.Sign, read map[signs.Sign]signs.Testimony) error {
	if len(asked) == 0 {
		return nil
	}
	w := signs.Weigh(asked, n, read, time.Time{}, time.Time{}) // no age limit: the decision has just checked their age
	if w.Ill {
		return nil
	}
	if w.Unread {
		w.Saw = append(w.Saw, "signs that the Node does not show could not be read")
	}
	return remediations.Withhold(remediations.ReasonNotWitnessed, "the policy's witness no longer says that the node is ill: %s", strings.Join(w.Saw, "; "))
}
