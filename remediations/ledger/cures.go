package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// unseenMost bounds the number of periods in Ledger.Unseen.
const unseenMost = 16

// Span is a period. To is zero while the period continues.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
	// Unknown has the fields of this entry that a newer Drydock wrote. They are written back
	// unchanged.
	Unknown Unknown `json:"-"`
}

// Saw records whether Drydock can observe alerts now. blindSince is when it lost the alerts. It is
// zero if Drydock can observe them. Saw reports whether the ledger has changed.
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

// UnseenIn returns for how long Drydock could not observe alerts between from and to.
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

// Cured records how a repair of the machine ended. If it ended with a cure and the alert then
// returns, the next repair continues the plan. After any other end, the next repair starts the plan
// again.
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

// remember stores the cure. It replaces the machine's earlier cure by the same policy.
func (l *Ledger) remember(machine string, c Cure) {
	if i := slices.IndexFunc(l.Cures[machine], func(o Cure) bool { return o.Policy == c.Policy && o.Repair == c.Repair }); i >= 0 {
		c.Unknown = l.Cures[machine][i].Unknown
	}
	l.forgetCure(machine, c.Policy)
	l.cures(machine, append(slices.Clone(l.Cures[machine]), c))
}

// forgetCure removes the machine's cure by that policy, and reports whether the ledger had one.
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

// Interrupted records how far the slot's repair had come when its Node was deleted, because the
// machine may register again. The next repair then continues the plan, as after a cure that did not
// last. Interrupted reports whether it recorded anything.
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

// RanOut records that the machine's repair has tried its whole plan. If the Node is deleted, its
// record is lost, but the machine may register again. Then the plan must not start again, until a
// person's reset or until limits.repairsWindow has passed.
func (l *Ledger) RanOut(n *corev1.Node, r *remediations.Record) {
	ref, ok := r.Issued()
	if !ok || r.Cause.Request != "" {
		return
	}
	l.remember(Machine(n), Cure{Repair: r.ID, Policy: r.Policy, At: r.Since, Step: ref, Steps: r.All(), Relapsed: true})
}

// ForgetCures removes the ledger's cures of the Node's machine by that policy, and also its
// exhausted plan. The next repair then starts the plan again. The number of repairs begun on the
// machine stays.
func (l *Ledger) ForgetCures(n *corev1.Node, policy string) {
	l.forgetCure(remediations.MachineOf(n), policy)
	l.forgetCure(Machine(n), policy)
}

// LastCure returns the end of the policy's last repair of the Node's machine, if the next repair
// must continue that repair's plan. It returns nil if the next repair starts the plan again.
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

// Relapse records that the machine's cure did not last, because the alert returned. It then counts
// as a failed repair of its policy.
func (l *Ledger) Relapse(machine string, c Cure) {
	c.Relapsed = true
	l.remember(machine, c)
	l.Finished(c.Policy, c.Repair, remediations.OutcomeRelapsed)
}

// pruneCures removes the cures that can no longer relapse. A cure stays for the relapse window and
// one more day: the alert may return late, and the repair of that alert may be held for a day. An
// entry without a cure stays for at least limits.repairsWindow.
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

// endsMost is the largest number of repair ends that the ledger stores for each policy. It is much
// larger than FailingAfter, because a stored cure becomes a failure later if its alert returns.
const endsMost = 16

// RepairEnd is how one repair of a policy ended. Failed means that it was exhausted or that its
// cure did not last.
type RepairEnd struct {
	Repair string `json:"repair,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Unknown has the fields of this entry that a newer Drydock wrote. They are written back
	// unchanged.
	Unknown Unknown `json:"-"`
}

// Finished records how a repair of the policy ended, and reports whether the ledger has changed.
// Each repair counts once: a later result replaces the earlier one.
//
// The ledger counts failures in a row, and FailingAfter of them stop the policy. Any other end sets
// the count to zero. A policy that is stopped starts again only in two cases: a repair in flight
// ends as Recovered, or a person resets the policy.
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

// Cure is a repair that ended because the machine was well. The ledger stores it until the alert's
// return would no longer count as a relapse.
type Cure struct {
	Repair string    `json:"repair"`
	Policy string    `json:"policy"`
	At     time.Time `json:"at"`
	// Step is the last attempt that this repair made. Steps are all attempts of this repair, and of
	// the earlier repairs whose plan it continued.
	Step  remediations.StepRef  `json:"step"`
	Steps remediations.Attempts `json:"steps"`
	// Trials are the scopes of the breakers that had the repair as their trial.
	Trials []string `json:"trials,omitempty"`
	// Relapsed means that the alert returned, and that the policy's failures already include this.
	// It is also true for an entry that was not a cure: its Node was deleted during the repair, or
	// its plan was exhausted.
	Relapsed bool `json:"relapsed,omitempty"`
	// Unknown has the fields of this entry that a newer Drydock wrote. They are written back
	// unchanged.
	Unknown Unknown `json:"-"`
}

// CureOf returns the cure of a history entry. It returns nil if the repair did not cure its
// machine, or if the machine has been replaced since.
func CureOf(e remediations.Entry) *Cure {
	if !e.Cured() {
		return nil
	}
	return &Cure{Repair: e.ID, Policy: e.Policy, At: e.Ended, Step: *e.Last, Steps: slices.Concat(e.Earlier, e.Steps), Relapsed: e.Outcome == remediations.OutcomeRelapsed}
}
