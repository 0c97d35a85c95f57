package node

import (
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// faultGone reports whether the policy's witness shows that the fault is gone. unread means that
// the witness must be read first. A requested repair may have had no fault: then gone is false only
// if the witness shows one.
func (s *state) faultGone(p *remediations.Policy, r *remediations.Record, since, now time.Time) (gone, unread bool, saw string) {
	if p.Witness == nil {
		return true, false, ""
	}
	w := signs.Weigh(p.Witness.Signs, remediations.WithGPUsBefore(s.Node, r, s.Ledger.GPUsOf(s.Node)), s.Read, since, now)
	if w.Unread {
		return false, true, ""
	}
	if r.Cause.Request != "" {
		return !w.Ill, false, strings.Join(w.Saw, "; ")
	}
	return w.Well, false, strings.Join(w.Saw, "; ")
}
