package node

import (
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// MayStillAct is the last check of the Node right before a call. It returns why the call must not
// be made, or nil. The record must still have the intent. No new mark of a person or of another
// system may forbid the call. One of the signs must still show that the node is ill. read has the
// signs that the Node itself does not show.
func MayStillAct(c *remediations.Config, n *corev1.Node, intentID string, signs []signs.Sign, read map[signs.Sign]signs.Testimony) error {
	j := c.Registry.ReadJournal(n)
	r := j.Record
	if r == nil || r.Phase != remediations.PhaseActing || r.Intent.ID != intentID {
		return remediations.Withhold(remediations.ReasonCallWithheld, "the intent %s is no longer on record", intentID)
	}
	if of := c.Remediation(r.Step.Name); of.Refuses != nil && of.Refuses(n) != "" {
		return remediations.Withhold(remediations.ReasonProviderAbsent, "%s", of.Refuses(n))
	}
	if r.Drained() && !n.Spec.Unschedulable {
		return remediations.Withhold(remediations.ReasonCallWithheld, "the node was uncordoned after it was drained")
	}
	if j.Malformed != nil {
		return remediations.Withhold(remediations.ReasonNodeUnderRepair, "a record on the node cannot be read: %w", j.Malformed)
	}
	if l := j.Location(); l != nil && l.Phase.InFlight() {
		return remediations.Withhold(remediations.ReasonNodeUnderRepair, "repair %s moves the mesh leadership off the node", l.ID)
	}
	if err := lifecycle.LetsAct(c.HoldWhen, n, j, r.Intent.At); err != nil {
		return err
	}
	return lifecycle.StillWitnessed(remediations.WithGPUsBefore(n, r, 0), signs, read)
}
