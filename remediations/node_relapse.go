package remediations

import (
	"fmt"
	"slices"
	"time"
)

// Cure is a repair that ended because the machine was well, as it is remembered until its relapse window is over.
type Cure struct {
	Repair string    `json:"repair"`
	Policy string    `json:"policy"`
	At     time.Time `json:"at"`
	// Step is the attempt that was issued last, Steps are all that were issued, by this repair and those that it went on from.
	Step  StepRef  `json:"step"`
	Steps []string `json:"steps"`
	// Trials are the scopes of the breakers that the repair was on trial for.
	Trials []string `json:"trials,omitempty"`
	// Relapsed: its alert came back, and that was counted.
	Relapsed bool `json:"relapsed,omitempty"`
}

// After is the repair that a record goes on from, since its alert came back: its last attempt, and all that were issued.
type After struct {
	ID    string   `json:"id"`
	Step  StepRef  `json:"step"`
	Steps []string `json:"steps"`
}

// spent says that the plan is past the attempt: an earlier repair, from which this one goes on, has issued it. A step that
// only prepares others is done again: the node was given back in between.
func (r *Record) spent(p *Policy, ref StepRef) bool {
	a := r.After
	if a == nil || !Registry[ref.Name].Once || a.Step.Index >= len(p.Plan) || p.Plan[a.Step.Index].Name != a.Step.Name {
		return false // or the plan has become another one
	}
	return ref.Index < a.Step.Index || (ref.Index == a.Step.Index && ref.Attempt <= a.Step.Attempt)
}

// firstStepOf is the first step of the plan that is left for the record.
func (s *State) firstStepOf(p *Policy, r *Record) (StepRef, bool) {
	known := *s
	known.Journal.Record = r
	return known.firstStep(p)
}

// begins says that some step of the plan can be carried out, if the record goes on from nothing.
func (s *State) begins(p *Policy, r *Record) bool {
	anew := r.Clone()
	anew.After = nil
	_, ok := s.firstStepOf(p, anew)
	return ok
}

// all are the attempts issued by the repair and by those that it went on from, oldest first.
func (r *Record) all() []string {
	if r.After == nil {
		return r.Done
	}
	return slices.Concat(r.After.Steps, r.Done)
}

// issued is the attempt of the intent. While Pending, Step already names the next one.
func (r *Record) issued() (StepRef, bool) {
	var ref StepRef
	if r.Intent == nil {
		return ref, false
	}
	if _, err := fmt.Sscanf(r.Intent.ID, r.ID+"-%d-%d", &ref.Index, &ref.Attempt); err != nil {
		return ref, false
	}
	ref.Name = stepName(LastDone(r))
	return ref, true
}

// cure is what the entry says of a cure; nil: it was none, or another machine has come since.
func (e Entry) cure() *Cure {
	if e.Last == nil || e.Request != "" || (e.Outcome != Recovered && e.Outcome != SelfRecovered && e.Outcome != Relapsed) {
		return nil
	}
	return &Cure{Repair: e.ID, Policy: e.Policy, At: e.Ended, Step: *e.Last, Steps: slices.Concat(e.Earlier, e.Steps), Relapsed: e.Outcome == Relapsed}
}

// lastCure is how the policy's last repair of the machine ended, if that was a cure. The Node's history has it, and the
// ledger has it for a Node that was deleted and registered again.
func (s *State) lastCure(policy string) *Cure {
	var known *Cure
	if s.Ledger != nil {
		for _, c := range s.Ledger.Cures[Machine(s.Node)] {
			if c.Policy == policy {
				known = &c
			}
		}
	}
	for _, e := range s.Journal.History {
		if e.Policy != policy || kindOf(e.Target) != "" || e.onlyHeld() {
			continue
		}
		switch {
		case known != nil && known.Repair == e.ID:
			known.Relapsed = known.Relapsed || e.Outcome == Relapsed
		case known == nil || known.At.Before(e.Ended):
			return e.cure()
		}
		break
	}
	return known
}

// relapse is the cure that did not last, if the alert is one that came back within the policy's relapseWindow; nil: it is a
// fault of its own. How long the alert has been held since makes no difference, and time in which Drydock was blind does not
// count. A repair that ended as SelfRecovered is no other: its steps cured nothing.
func (s *State) relapse(p *Policy, a *Alert, now time.Time) *Cure {
	if p.RelapseWindow <= 0 || s.Ledger == nil {
		return nil
	}
	c := s.lastCure(p.Name)
	if c == nil {
		return nil
	}
	began := now
	for _, t := range []time.Time{a.ReceivedAt, a.StartsAt} {
		if t.After(c.At) && t.Before(began) {
			began = t
		}
	}
	if began.Sub(c.At)-s.Ledger.unseen(c.At, began) >= p.RelapseWindow {
		return nil
	}
	return c
}

// relapsed names the cure that has to be counted as failed before anything more is done.
func (s *State) relapsed(d *Decision) {
	if d.Record == nil || d.Record.After == nil || (d.Verb != Issue && d.Verb != End) {
		return
	}
	if c := s.lastCure(d.Record.Policy); c != nil && c.Repair == d.Record.After.ID && !c.Relapsed {
		d.Relapsed = c
	}
}

// spentPlan ends a plan of which the earlier repairs have tried everything. Every guard is asked first, as before a step.
func (s *State) spentPlan(c *Candidate, r *Record) Decision {
	if s.Ledger == nil {
		return act(nodeTarget{s}, c, r) // which waits for it, or holds
	}
	c.Own = r.ID
	if reason, f := c.hold(); f != nil && reason != Observing {
		return act(nodeTarget{s}, c, r)
	}
	if c.unwitnessed() {
		return s.lookOnce(c, Ask{Witness: true})
	}
	known := *s
	known.Journal.Record = r
	return known.exhaust(c.Policy, c.Now)
}

// MarkRelapsed writes into the history that the repair's alert came back.
func MarkRelapsed(history []Entry, repair string) []Entry {
	out := slices.Clone(history)
	for i := range out {
		if out[i].ID == repair && kindOf(out[i].Target) == "" && out[i].cure() != nil {
			out[i].Outcome = Relapsed
		}
	}
	return out
}
