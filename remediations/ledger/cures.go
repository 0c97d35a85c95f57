package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// unseenMost bounds the spans that the ledger keeps of the time in which Drydock was blind.
const unseenMost = 16

// Span is a time; without an end it goes on.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
	// Unknown are fields that a newer Drydock wrote.
	Unknown Unknown `json:"-"`
}

// Saw notes since when Drydock has been blind, or that it is blind no more; since is zero then. It says whether that is new.
func (l *Ledger) Saw(blindSince, now time.Time) bool {
	n := len(l.Unseen)
	open := n > 0 && l.Unseen[n-1].To.IsZero()
	switch blind := !blindSince.IsZero(); {
	case blind == open:
		return false
	case blind:
		l.Unseen = append(slices.Clone(l.Unseen), Span{From: remediations.Instant(blindSince)})
		if n >= unseenMost { // what lies between the oldest two counts as unseen, too: a relapse is found rather than missed
			l.Unseen = append([]Span{{From: l.Unseen[0].From, To: l.Unseen[1].To}}, l.Unseen[2:]...)
		}
	default:
		l.Unseen = slices.Clone(l.Unseen)
		l.Unseen[n-1].To = remediations.Instant(now)
	}
	return true
}

// UnseenIn is how much of the time Drydock was blind.
func (l *Ledger) UnseenIn(from, to time.Time) (sum time.Duration) {
	for _, s := range l.Unseen {
		if s.To.IsZero() || s.To.After(to) {
			s.To = to
		}
		if s.From.Before(from) {
			s.From = from
		}
		sum += max(0, s.To.Sub(s.From))
	}
	return sum
}

// Cured remembers how a repair of the machine ended: a cure, which may relapse, or anything else, after which the plan
// begins anew. trials are the breakers that it was on trial for.
func (l *Ledger) Cured(machine string, e *remediations.Entry, trials []string) bool {
	c := CureOf(*e)
	if c == nil {
		return l.forgetCure(machine, e.Policy)
	}
	c.Trials = trials
	l.remember(machine, *c)
	return true
}

// remember keeps the cure in place of the machine's earlier one of that policy.
func (l *Ledger) remember(machine string, c Cure) {
	if i := slices.IndexFunc(l.Cures[machine], func(o Cure) bool { return o.Policy == c.Policy && o.Repair == c.Repair }); i >= 0 {
		c.Unknown = l.Cures[machine][i].Unknown
	}
	l.forgetCure(machine, c.Policy)
	l.cures(machine, append(slices.Clone(l.Cures[machine]), c))
}

// forgetCure drops the machine's cure of that policy; it says whether there was one.
func (l *Ledger) forgetCure(machine, policy string) bool {
	before := l.Cures[machine]
	cures := slices.DeleteFunc(slices.Clone(before), func(c Cure) bool { return c.Policy == policy })
	if len(cures) == len(before) {
		return false
	}
	l.cures(machine, cures)
	return true
}

func (l *Ledger) cures(machine string, cures []Cure) {
	if l.Cures == nil {
		l.Cures = map[string][]Cure{}
	}
	if l.Cures[machine] = cures; len(cures) == 0 {
		delete(l.Cures, machine)
	}
}

// Interrupted remembers, for a machine that may register again, how far the slot's repair was when its Node was deleted: the next repair
// goes on with the plan, as after a cure that did not last. It says whether there is something to remember.
func (l *Ledger) Interrupted(c *remediations.Config, s Slot, now time.Time) bool {
	p := c.Policy(s.Policy)
	if s.Kind != remediations.KindNode || s.ProviderID == "" || p == nil {
		return false
	}
	ref, ok := remediations.AttemptNamed(s.Repair, s.Attempt)
	if !ok || ref.Index < 0 || ref.Index >= len(p.Plan) {
		return false
	}
	ref.Name = p.Plan[ref.Index].Name
	l.remember(remediations.Machine(s.UID, s.ProviderID), Cure{
		Repair: s.Repair, Policy: s.Policy, At: remediations.Instant(now), Step: ref, Steps: remediations.Attempts{ref.Issued()}, Relapsed: true,
	})
	return true
}

// RanOut remembers that the machine's repair has tried its whole plan. A Node that is deleted and registered again takes its record along,
// and the machine must not begin anew. Only a person's reset does, or limits.repairsWindow.
func (l *Ledger) RanOut(n *corev1.Node, r *remediations.Record) {
	ref, ok := r.Issued()
	if !ok || r.Cause.Request != "" {
		return
	}
	l.remember(Machine(n), Cure{Repair: r.ID, Policy: r.Policy, At: r.Since, Step: ref, Steps: r.All(), Relapsed: true})
}

// ForgetCures forgets how repairs of the policy on the Node's machine ended, also that a plan ran out. What was begun on the machine still counts.
func (l *Ledger) ForgetCures(n *corev1.Node, policy string) {
	l.forgetCure(remediations.MachineOf(n), policy)
	l.forgetCure(Machine(n), policy)
}

// LastCure is how the policy's last repair of the Node's machine ended, where the next one goes on from it; nil: it begins anew.
func (l *Ledger) LastCure(n *corev1.Node, policy string) (last *Cure) {
	for _, machine := range []string{remediations.MachineOf(n), Machine(n)} {
		for _, c := range l.Cures[machine] {
			if c.Policy == policy && (last == nil || c.At.After(last.At)) {
				last = &c
			}
		}
	}
	return last
}

// Relapse counts the machine's cure as failed.
func (l *Ledger) Relapse(machine string, c Cure) {
	c.Relapsed = true
	l.remember(machine, c)
	l.Finished(c.Policy, c.Repair, remediations.OutcomeRelapsed)
}

// pruneCures drops what can have no relapse any more, even if the alert came back in time and was held for a day. What was no cure is kept
// for limits.repairsWindow at least.
func (l *Ledger) pruneCures(c *remediations.Config, now time.Time) {
	longest := remediations.PendingFor
	for _, p := range c.Policies {
		longest = max(longest, p.RelapseWindow+remediations.PendingFor)
	}
	for machine, cures := range l.Cures {
		l.cures(machine, slices.DeleteFunc(slices.Clone(cures), func(of Cure) bool {
			most := longest
			if of.Relapsed {
				most = max(longest, c.Limits.RepairsWindow+remediations.PendingFor)
			}
			return now.Sub(of.At)-l.UnseenIn(of.At, now) >= most
		}))
	}
	l.Unseen = slices.DeleteFunc(slices.Clone(l.Unseen), func(s Span) bool { return !s.To.IsZero() && now.Sub(s.To) >= 2*longest })
}

// endsMost bounds the ends that the ledger keeps of each policy: many more than its row is long, because the repairs of
// several nodes may all relapse.
const endsMost = 16

// RepairEnd is how one repair of a policy ended.
type RepairEnd struct {
	Repair string `json:"repair,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Unknown are fields that a newer Drydock wrote.
	Unknown Unknown `json:"-"`
}

// Finished counts how a repair of the policy ended, each repair once: what is said of it again is written over. A stopped
// policy goes on after a Recovered (of a repair that was under way) or a person's reset; a row that is not full yet is
// broken by any other end. It says whether anything changed.
func (l *Ledger) Finished(policy, repair string, o remediations.Outcome) bool {
	if o == remediations.OutcomeObserved {
		return false // nothing was tried
	}
	failed := o == remediations.OutcomeExhausted || o == remediations.OutcomeRelapsed
	ends := slices.Clone(l.Status.Ends[policy])
	if len(ends) == 0 {
		ends = make([]RepairEnd, l.Status.Exhausted[policy])
		for i := range ends {
			ends[i].Failed = true // a ledger of an earlier version
		}
	}
	i := slices.IndexFunc(ends, func(e RepairEnd) bool { return e.Repair == repair && repair != "" })
	switch {
	case i >= 0 && ends[i].Failed == failed:
		return false
	case i >= 0:
		ends[i].Failed = failed
	case !failed && o != remediations.OutcomeRecovered && l.Failing(policy):
		return false
	default:
		ends = append(ends, RepairEnd{Repair: repair, Failed: failed})
		ends = ends[max(0, len(ends)-endsMost):]
	}
	row := 0
	for _, e := range slices.Backward(ends) {
		if !e.Failed {
			break
		}
		row++
	}
	if l.Status.Ends == nil {
		l.Status.Ends = map[string][]RepairEnd{}
	}
	if l.Status.Exhausted == nil {
		l.Status.Exhausted = map[string]int{}
	}
	l.Status.Ends[policy], l.Status.Exhausted[policy] = ends, row
	if row == 0 {
		delete(l.Status.Exhausted, policy)
	}
	if o == remediations.OutcomeRecovered {
		delete(l.Status.Stopped, policy)
	}
	return true
}

// Cure is a repair that ended because the machine was well, as it is remembered until its relapse window is over.
type Cure struct {
	Repair string    `json:"repair"`
	Policy string    `json:"policy"`
	At     time.Time `json:"at"`
	// Step is the attempt that was issued last, Steps are all that were issued, by this repair and those that it went on from.
	Step  remediations.StepRef  `json:"step"`
	Steps remediations.Attempts `json:"steps"`
	// Trials are the scopes of the breakers that the repair was on trial for.
	Trials []string `json:"trials,omitempty"`
	// Relapsed: its alert came back, and that was counted; or it was no cure, because its Node was deleted or its plan ran out.
	Relapsed bool `json:"relapsed,omitempty"`
	// Unknown are fields that a newer Drydock wrote.
	Unknown Unknown `json:"-"`
}

// CureOf is what the entry says of a cure; nil: it was none, or another machine has come since.
func CureOf(e remediations.Entry) *Cure {
	if !e.Cured() {
		return nil
	}
	return &Cure{Repair: e.ID, Policy: e.Policy, At: e.Ended, Step: *e.Last, Steps: slices.Concat(e.Earlier, e.Steps), Relapsed: e.Outcome == remediations.OutcomeRelapsed}
}
