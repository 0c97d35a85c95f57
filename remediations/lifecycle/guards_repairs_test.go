package lifecycle

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func (c *Candidate) isHeldBy(reason Reason) bool {
	_, f := c.HeldBy([]Reason{reason})
	return f != nil
}

// rebooted returns the entry of a repair by policy q that rebooted n1 and ended five minutes ago.
func rebooted(change func(e *Entry)) Entry {
	e := Entry{ID: "r0", Policy: "q", Outcome: OutcomeRecovered, Steps: Attempts{{Name: "reboot", Number: 1}}, Began: callTime.Add(-time.Hour), Ended: callTime.Add(-5 * time.Minute)}
	change(&e)
	return e
}

// TestAnUnreadableRecordHoldsEveryRepairOnItsNode: a record that cannot be read may describe a
// running repair. So it holds the repair of the node and that of a sidecar on it.
func TestAnUnreadableRecordHoldsEveryRepairOnItsNode(t *testing.T) {
	for _, kind := range []Kind{KindNode, KindSidecar} {
		c := aCandidate()
		c.Kind = kind
		require.False(t, c.isHeldBy(ReasonNodeUnderRepair), "kind %q", kind)
		c.Journal.Malformed = errors.New("phase Repairing does not exist")
		_, f := c.HeldBy([]Reason{ReasonNodeUnderRepair})
		require.NotNil(t, f, "kind %q", kind)
		require.Contains(t, f.Message, "phase Repairing does not exist")
	}
}

// TestAfterAnotherPolicysRestartTheNextRestartWaits: the wait is that of the next step. It begins
// when the other repair ended. The Node's history or the ledger alone is enough for it.
func TestAfterAnotherPolicysRestartTheNextRestartWaits(t *testing.T) {
	const wait = 10 * time.Minute
	asIs := func(*Entry) {}
	ended := func(ago time.Duration) func(e *Entry) {
		return func(e *Entry) { e.Ended = callTime.Add(-ago) }
	}
	for name, c := range map[string]struct {
		past   func(e *Entry)
		change func(c *Candidate)
		held   bool
	}{
		"a reboot five minutes ago":  {asIs, nil, true},
		"just before the wait ends":  {ended(wait - 1), nil, true},
		"the wait has ended":         {ended(wait), nil, false},
		"no step restarted the node": {func(e *Entry) { e.Steps[0].Name = "drain" }, nil, false},
		"a reboot by the own policy": {func(e *Entry) { e.Policy = "p" }, nil, false},
		"another target of the node": {func(e *Entry) { e.Target = "leader" }, nil, false},
		"the next step is a drain":   {asIs, func(c *Candidate) { c.Step.Name = "drain" }, false},
		"a person requested it":      {asIs, func(c *Candidate) { c.Request = "remediation/reboot" }, false},
	} {
		for _, inLedger := range []bool{true, false} {
			asked, past := aCandidate(), rebooted(c.past)
			asked.Node.UID = "uid-n1"
			asked.Policy.Cooldown, asked.Policy.Plan[0].Wait = 0, wait
			asked.Config.Policies = []*Policy{asked.Policy, {Name: "q", Cooldown: time.Hour}} // the ledger keeps an end as long as any cooldown
			if end, ok := ledger.EndOf(asked.Config, past); ok && inLedger {
				asked.Ledger.Ended(asked.Config, asked.Node, end, callTime)
			} else {
				asked.Journal.History = []Entry{past}
			}
			if c.change != nil {
				c.change(asked)
			}
			_, f := asked.HeldBy([]Reason{ReasonCooldown})
			require.Equal(t, c.held, f != nil, "%s, in the ledger: %t", name, inLedger)
			if f != nil {
				require.Equal(t, past.Ended.Add(wait), f.Until, name)
			}
		}
	}
}

// TestARepairThatWasOnlyHeldBeginsNoCooldown, also for a policy that observes: only an observed
// step would have been issued.
func TestARepairThatWasOnlyHeldBeginsNoCooldown(t *testing.T) {
	for outcome, held := range map[Outcome]bool{OutcomeObserved: true, OutcomeCancelled: false} {
		c := aCandidate()
		c.Policy.Mode = ModeObserve
		c.Journal.History = []Entry{{ID: "r0", Policy: "p", Outcome: outcome, Ended: callTime.Add(-5 * time.Minute)}}
		require.Equal(t, held, c.isHeldBy(ReasonCooldown), outcome)
	}
}

// TestWhichRepairsCountForTheLimitOfTheMachine: repairs with a disruptive step on the machine count
// for a day after they began. Each counts once, whether the ledger has it, the history, or both.
func TestWhichRepairsCountForTheLimitOfTheMachine(t *testing.T) {
	const day = 24 * time.Hour
	began := func(ago time.Duration) func(e *Entry) {
		return func(e *Entry) { e.Began = callTime.Add(-ago) }
	}
	observed := func(step string) []Entry {
		return []Entry{rebooted(func(e *Entry) {
			e.Outcome, e.Steps, e.Began = OutcomeObserved, nil, callTime.Add(-25*time.Hour)
			e.Would = &Would{Step: Attempt{Name: step, Number: 1}}
		})}
	}
	inLedger := func(repair string, ago time.Duration) ledger.Begun {
		return ledger.Begun{Repair: repair, At: callTime.Add(-ago)}
	}
	one := func(change func(e *Entry)) []Entry { return []Entry{rebooted(change)} }
	for name, c := range map[string]struct {
		mode    Mode
		history []Entry
		ledger  []ledger.Begun
		count   int
		oldest  time.Duration // how long ago the oldest began
	}{
		"none":                               {},
		"one":                                {history: one(began(time.Hour)), count: 1, oldest: time.Hour},
		"almost a day ago":                   {history: one(began(day - 1)), count: 1, oldest: day - 1},
		"a day ago":                          {history: one(began(day))},
		"in the history and in the ledger":   {history: one(began(time.Hour)), ledger: []ledger.Begun{inLedger("r0", time.Hour)}, count: 1, oldest: time.Hour},
		"another one in the ledger":          {history: one(began(3 * time.Hour)), ledger: []ledger.Begun{inLedger("r9", time.Hour)}, count: 2, oldest: 3 * time.Hour},
		"the oldest is in the ledger":        {history: one(began(time.Hour)), ledger: []ledger.Begun{inLedger("r9", 3*time.Hour)}, count: 2, oldest: 3 * time.Hour},
		"this repair itself":                 {ledger: []ledger.Begun{inLedger("r1", time.Hour)}},
		"a step that disrupts nothing":       {history: one(func(e *Entry) { e.Steps[0].Name = "read-logs" })},
		"a location that the node led":       {history: one(func(e *Entry) { e.Target, e.Steps[0].Name = "leader", "promote-leader" })},
		"a person reset the node":            {history: one(func(e *Entry) { e.Reset = true })},
		"observed, and counted from its end": {mode: ModeObserve, history: observed("reboot"), count: 1, oldest: 5 * time.Minute},
		"observed a step without disruption": {mode: ModeObserve, history: observed("read-logs")},
		"observed, and enforced since":       {mode: ModeEnforce, history: observed("reboot")},
	} {
		asked := aCandidate()
		asked.Policy.Mode, asked.Journal.History = c.mode, c.history
		asked.Ledger.Repairs = map[string][]ledger.Begun{ledger.Machine(asked.Node): c.ledger}
		count, oldest := asked.begun()
		require.Equal(t, c.count, count, name)
		if c.count > 0 {
			require.Equal(t, callTime.Add(-c.oldest), oldest, name)
		}
	}
}
