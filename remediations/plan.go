package remediations

import (
	"slices"
	"strings"
	"time"
)

// Doable says that the step stands in the plan as named, that this installation can carry it out, and that it takes
// this node.
func (s *State) Doable(p *Policy, ref StepRef) bool {
	if refuses := Registry[ref.Name].Refuses; refuses != nil && refuses(s.Node) != "" {
		return false
	}
	if r := s.Journal.Record; r != nil && r.Policy == p.Name && (r.passed(ref) || r.spent(p, ref)) {
		return false
	}
	return ref.Index < len(p.Plan) && p.Plan[ref.Index].Name == ref.Name && ref.Attempt <= p.Plan[ref.Index].Attempts &&
		s.Config.provides(p.Plan[ref.Index])
}

// firstStep is the first step of the plan that can be carried out.
func (s *State) firstStep(p *Policy) (StepRef, bool) { return s.stepFrom(p, 0) }

// NextStep is what comes after an issued attempt: the step's next attempt, else the next step that can be carried out.
func (s *State) NextStep(p *Policy, after StepRef) (StepRef, bool) {
	again := StepRef{Index: after.Index, Name: after.Name, Attempt: after.Attempt + 1}
	if s.Doable(p, again) {
		return again, true
	}
	return s.stepFrom(p, after.Index+1)
}

func (s *State) stepFrom(p *Policy, index int) (StepRef, bool) {
	for i := index; i < len(p.Plan); i++ {
		for attempt := 1; attempt <= p.Plan[i].Attempts; attempt++ { // earlier repairs may have issued the first ones
			ref := StepRef{Index: i, Name: p.Plan[i].Name, Attempt: attempt}
			if s.Doable(p, ref) && !s.idle(p, i) {
				return ref, true
			}
		}
	}
	return StepRef{}, false
}

// idle says that the step only prepares others, and that none of those can be done: nobody wants a node emptied for
// nothing. One that the plan ends with is what somebody wants.
func (s *State) idle(p *Policy, index int) bool {
	if Registry[p.Plan[index].Name].Once || index == len(p.Plan)-1 {
		return false
	}
	_, more := s.stepFrom(p, index+1)
	return !more
}

// refusals are why steps of the plan are never done to this node.
func (s *State) refusals(p *Policy) string {
	var out []string
	for _, step := range p.Plan {
		if refuses := Registry[step.Name].Refuses; refuses != nil && refuses(s.Node) != "" {
			out = append(out, "; "+refuses(s.Node))
		}
	}
	return strings.Join(slices.Compact(out), "")
}

func joined(steps []string) string { return strings.Join(steps, ", ") }

// Words are what the record says of why nothing is done.
func (h *Hold) Words() string {
	if h == nil {
		return "no reason on record"
	}
	return h.Message
}

func (h *Hold) same(o *Hold) bool {
	if h == nil || o == nil {
		return h == o
	}
	untilSame := (h.Until == nil) == (o.Until == nil) && (h.Until == nil || h.Until.Equal(*o.Until))
	return h.Reason == o.Reason && untilSame
}

// LastDone is the attempt that was issued last, as "reboot:1": that of the intent, where Step still names it; while
// Pending, Step already names the next one. An earlier version did not write down a step that its plan repeats.
func LastDone(r *Record) string {
	if len(r.Done) == 0 || r.Intent.Of(r, r.Step) {
		return r.Step.String()
	}
	return r.Done[len(r.Done)-1]
}

// stepName is the remediation's name in an attempt written as "reboot:1".
func stepName(done string) string { name, _, _ := strings.Cut(done, ":"); return name }

// mildestFirst are the node's alerts that a policy takes: the one with the mildest first step goes first, so that a more
// invasive plan does not race it, and then the older one.
func (s *State) mildestFirst() []*Alert {
	type ranked struct {
		*Alert
		invasive int
	}
	var all []ranked
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		p := s.Config.Policy(a.Policy)
		if p == nil || p.Mode == ModeOff || p.Kind != KindNode {
			continue
		}
		r := ranked{a, len(Registry)}
		if step, ok := s.firstStep(p); ok {
			r.invasive = Registry[step.Name].Invasive
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return a.invasive - b.invasive })
	out := make([]*Alert, len(all))
	for i, r := range all {
		out[i] = r.Alert
	}
	return out
}

// alsoMost bounds what a record names of further alerts.
const alsoMost = 16

// also are the node's other alerts that Alertmanager says are active.
func (s *State) also(r *Record) []string {
	var out []string
	for _, a := range s.mildestFirst() {
		if a.Fingerprint != r.Cause.Alert && s.Word.About(a.Fingerprint, s.Config, s.ownSilence()).Reason == "" && len(out) < alsoMost {
			out = append(out, a.Fingerprint)
		}
	}
	return out
}

// likelyStep is the step that would come next if Alertmanager confirmed the alert and nobody silenced it; empty: some other
// guard holds it, or nobody need be asked about the machine first.
func (s *State) likelyStep(p *Policy, a *Alert, now time.Time) StepOn {
	step, ok := s.firstStep(p)
	if !ok || s.Ledger == nil {
		return StepOn{}
	}
	c := &Candidate{State: s, Now: now, Policy: p, Step: step, Alert: a}
	if r := s.Journal.Record; r != nil {
		c.Own = r.ID
	}
	if _, f := c.hold(); f != nil || s.surveyOf(c) != nil || s.trouble(c) != nil {
		return StepOn{}
	}
	return c.ask()
}
