package node

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Rest reports once that the node became well. It ends the repair only if the policy has
// endWhenWell. Otherwise a person must reset the node.
func (s *state) Rest(now time.Time) lifecycle.Decision {
	r, p := s.Record, s.policy()
	d := lifecycle.Decision{Verb: lifecycle.VerbRest, Message: fmt.Sprintf("repair %s has run out of steps; set %s=true when the node is fixed", r.ID, remediations.ResetKey)}
	switch {
	case p == nil || p.Mode == remediations.ModeOff || !p.Takes(s.Node) || !s.Sound():
		s.noteIll(&d)
		return d
	case s.Stale():
		d.Ask.Alerts, d.Well = true, !s.WellSince.IsZero()
		return d
	}
	d.Policy = p
	settled, due := *p, p.EndWhenWell > 0 && !s.WellSince.IsZero() && !now.Before(s.WellSince.Add(p.EndWhenWell))
	if due {
		settled.ProofFor = max(p.ProofFor, p.EndWhenWell)
	}
	cure, well := wellAgain(s).Cured(&settled, now)
	switch {
	case cure.Verb == lifecycle.VerbEnd && due && s.Ledger != nil:
		if e := cure.Ended; e.Last == nil && r.After != nil {
			step := r.After.Step
			e.Last = &step // this repair issued no step: it continued an earlier repair whose plan was exhausted
		}
		return cure
	case cure.Verb == lifecycle.VerbEnd:
		d.Well = true
		d.Heard, _ = s.Snapshot.Heard()
		s.noteWell(&d, p, now)
	case well:
		d.Well, d.Heard, d.Ask, d.Recheck = cure.Well, cure.Heard, cure.Ask, cure.Recheck
	case s.Snapshot.BlindCause(s.Config) == "":
		s.noteIll(&d)
	}
	if end := s.WellSince.Add(p.EndWhenWell); d.Well && p.EndWhenWell > 0 && !s.WellSince.IsZero() && end.After(now) && (d.Recheck.IsZero() || end.Before(d.Recheck)) {
		d.Recheck = end
	}
	return d
}

// recovered checks whether a node with an exhausted repair is well again.
type recovered struct{ state }

func wellAgain(s *state) *recovered {
	w := &recovered{}
	w.Bind(w, s.State, s.Subject)
	return w
}

// Verdict prefers an alert of the node that has not ended to the cause of the repair.
func (s *recovered) Verdict(cause remediations.Cause) alerts.Verdict {
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if p := s.Config.Policy(a.Policy); p == nil || p.Kind != remediations.KindNode {
			continue
		}
		if v := s.state.Verdict(remediations.Cause{Alert: a.Fingerprint}); !v.Gone {
			return v
		}
	}
	return s.state.Verdict(cause)
}

// Cure returns SelfRecovered, because no step of the exhausted repair has cured the node.
func (s *recovered) Cure(p *remediations.Policy) (remediations.Outcome, string) {
	return remediations.OutcomeSelfRecovered, fmt.Sprintf("the plan ran out of steps at %s, and the node has been well since %s, for endWhenWell (%s)",
		s.Record.Since.Format(time.RFC3339), s.WellSince.UTC().Format(time.RFC3339), text.Age(p.EndWhenWell))
}

// noteWell keeps a time that is already in the record, because a new leader of Drydock only knows a
// later one.
func (s *state) noteWell(d *lifecycle.Decision, p *remediations.Policy, now time.Time) {
	r, since := s.Record, s.WellSince
	if !r.WellSince.IsZero() {
		return
	}
	if since.IsZero() {
		since = now
	}
	d.Record = r.Clone()
	d.Record.WellSince = remediations.Instant(since)
	itself := ""
	if p.EndWhenWell > 0 {
		itself = fmt.Sprintf(" The repair ends by itself when the node has been well for %s.", text.Age(p.EndWhenWell))
	}
	notice(d, lifecycle.NodeWellAgain, "the node has been well since %s: the node is Ready, its lease is fresh and its alert is gone. Repair %s by policy %s ran out of steps and did not cure the node; a person must check the node. When the node is fixed: kubectl drydock reset %s.%s",
		d.Record.WellSince.Format(time.RFC3339), r.ID, r.Policy, s.Node.Name, itself)
}

func (s *state) noteIll(d *lifecycle.Decision) {
	if s.Record.WellSince.IsZero() {
		return
	}
	d.Record = s.Record.Clone()
	d.Record.WellSince = time.Time{}
}
