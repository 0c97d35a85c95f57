package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// unseenMost bounds Ledger.Unseen.
const unseenMost = 16

// Span is a period. To is zero while it continues.
type Span struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to,omitzero"`
	Unknown Unknown   `json:"-"`
}

// Saw records since when alerts cannot be observed, or zero. It reports whether the ledger has
// changed.
func (l *Ledger) Saw(blindSince, now time.Time) bool {
	n := len(l.Unseen)
	open := n > 0 && l.Unseen[n-1].To.IsZero()
	switch blind := !blindSince.IsZero(); {
	case blind == open:
		return false
	case blind:
		l.Unseen = append(slices.Clone(l.Unseen), Span{From: remediations.Instant(blindSince)})
		if n >= unseenMost { // join the two oldest periods and the time between them: a false relapse is better than a missed one
			l.Unseen = append([]Span{{From: l.Unseen[0].From, To: l.Unseen[1].To}}, l.Unseen[2:]...)
		}
	default:
		l.Unseen = slices.Clone(l.Unseen)
		l.Unseen[n-1].To = remediations.Instant(now)
	}
	return true
}

// UnseenIn returns for how long alerts could not be observed between from and to.
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

// Cured records how a repair of the machine ended. If the alert returns after a cure, the next
// repair continues the plan. After any other end it starts the plan again.
//
// trials are the scopes of the breakers that had the repair as their trial. Cured reports whether
// the ledger has changed.
func (l *Ledger) Cured(machine string, e *remediations.Entry, trials []string) bool {
	c := CureOf(*e)
	if c == nil {
		return l.forgetCure(machine, e.Policy)
	}
	c.Trials = trials
	l.remember(machine, *c)
	return true
}

// remember replaces the machine's earlier cure by the same policy.
func (l *Ledger) remember(machine string, c Cure) {
	if i := slices.IndexFunc(l.Cures[machine], func(o Cure) bool { return o.Policy == c.Policy && o.Repair == c.Repair }); i >= 0 {
		c.Unknown = l.Cures[machine][i].Unknown
	}
	l.forgetCure(machine, c.Policy)
	l.cures(machine, append(slices.Clone(l.Cures[machine]), c))
}

// forgetCure reports whether there was one.
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

// Interrupted records how far the repair had come when its Node was deleted: the machine may
// register again, and the next repair then continues the plan. It reports whether it recorded
// anything.
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

// RanOut records that the whole plan was tried. If the Node is deleted and the machine registers
// again, the plan must not start again, until a person's reset or until limits.repairsWindow has
// passed.
func (l *Ledger) RanOut(n *corev1.Node, r *remediations.Record) {
	ref, ok := r.Issued()
	if !ok || r.Cause.Request != "" {
		return
	}
	l.remember(Machine(n), Cure{Repair: r.ID, Policy: r.Policy, At: r.Since, Step: ref, Steps: r.All(), Relapsed: true})
}

// ForgetCures removes the machine's cures and its exhausted plan, so that the next repair starts
// the plan again. The number of repairs begun on the machine stays.
func (l *Ledger) ForgetCures(n *corev1.Node, policy string) {
	l.forgetCure(remediations.MachineOf(n), policy)
	l.forgetCure(Machine(n), policy)
}

// LastCure returns the policy's last repair of the machine if the next one must continue its plan,
// or nil.
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

// Relapse records that the cure did not last. It then counts as a failed repair of its policy.
func (l *Ledger) Relapse(machine string, c Cure) {
	c.Relapsed = true
	l.remember(machine, c)
	l.Finished(c.Policy, c.Repair, remediations.OutcomeRelapsed)
}

// pruneCures keeps a cure for the relapse window and one more day: the alert may return late, and
// its repair may be held for a day. An entry without a cure stays for at least
// limits.repairsWindow.
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

// endsMost is much larger than FailingAfter, because a stored cure becomes a failure later if its
// alert returns.
const endsMost = 16

// RepairEnd is how one repair ended. Failed means that it was exhausted or that its cure did not
// last.
type RepairEnd struct {
	Repair  string  `json:"repair,omitempty"`
	Failed  bool    `json:"failed,omitempty"`
	Unknown Unknown `json:"-"`
}

// Finished records how a repair of the policy ended, and reports whether the ledger has changed.
// Each repair counts once: a later result replaces the earlier one.
//
// FailingAfter failures in a row stop the policy. Any other end sets the count to zero. A stopped
// policy starts again only if a running repair ends as Recovered, or if a person resets it.
func (l *Ledger) Finished(policy, repair string, o remediations.Outcome) bool {
	if o == remediations.OutcomeObserved {
		return false // nothing was tried
	}
	failed := o == remediations.OutcomeExhausted || o == remediations.OutcomeRelapsed
	ends := slices.Clone(l.Status.Ends[policy])
	if len(ends) == 0 {
		ends = make([]RepairEnd, l.Status.Exhausted[policy])
		for i := range ends {
			ends[i].Failed = true // an earlier version of Drydock stored only the count
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

// Cure is a repair that ended because the machine was well. It is stored until the alert's return
// would no longer count as a relapse.
type Cure struct {
	Repair string    `json:"repair"`
	Policy string    `json:"policy"`
	At     time.Time `json:"at"`
	// Step is the last attempt. Steps also has the attempts of earlier repairs whose plan this one
	// continued.
	Step  remediations.StepRef  `json:"step"`
	Steps remediations.Attempts `json:"steps"`
	// Trials are the breakers that had the repair as their trial.
	Trials []string `json:"trials,omitempty"`
	// Relapsed means that the alert returned, and that this already counts as a failure. It is also
	// true for an entry that was not a cure: its Node was deleted during the repair, or its plan
	// was exhausted.
	Relapsed bool    `json:"relapsed,omitempty"`
	Unknown  Unknown `json:"-"`
}

// CureOf returns nil if the repair did not cure its machine, or if the machine was replaced since.
func CureOf(e remediations.Entry) *Cure {
	if !e.Cured() {
		return nil
	}
	return &Cure{Repair: e.ID, Policy: e.Policy, At: e.Ended, Step: *e.Last, Steps: slices.Concat(e.Earlier, e.Steps), Relapsed: e.Outcome == remediations.OutcomeRelapsed}
}
