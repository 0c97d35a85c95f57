package engine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// attemptsKept is how long an attempt is remembered: longer than any repair may take.
const attemptsKept = 2 * remediations.PendingFor

// attempts are those that this process took a slot for or called. No attempt is called twice, whatever the Nodes say.
type attempts map[string]attempted

type attempted struct {
	at     time.Time
	called bool
	// slot is when another process took the slot that names the attempt; zero: this process took it.
	slot time.Time
}

// reserving notes an attempt for which a slot is about to be taken, by the ledger as it was before.
func (a attempts) reserving(l *ledger.Ledger, n *corev1.Node, attempt string, now time.Time) {
	for id, was := range a {
		if now.Sub(was.at) > attemptsKept {
			delete(a, id)
		}
	}
	if _, known := a[attempt]; known {
		return
	}
	it := attempted{at: now}
	if slot := l.SlotOf(n.Name); slot != nil && slot.Attempt == attempt {
		it.slot = slot.Since
	}
	a[attempt] = it
}

// calling notes the call, and says why it may not be made; empty: it may.
func (a attempts) calling(attempt string, now time.Time) string {
	was := a[attempt]
	switch {
	case was.called:
		return fmt.Sprintf("this process already called attempt %s at %s, and its Node does not show it any more", attempt, remediations.Instant(was.at).Format(time.RFC3339))
	case !was.slot.IsZero():
		return fmt.Sprintf("the ledger names attempt %s since %s, so it may have been called, and its Node does not show it", attempt, remediations.Instant(was.slot).Format(time.RFC3339))
	}
	a[attempt] = attempted{at: now, called: true}
	return ""
}

// twice counts an attempt that may have been called before as one of which the outcome is unknown. Its call is not made.
func (p *pass) twice(c calling, m *repairMemory) bool {
	why := p.core.calling(p.attempts, c.attempt, p.now)
	if why == "" {
		return false
	}
	m.call = &lifecycle.Call{IntentID: c.attempt, Outcome: remediations.CallUnknown, Why: why}
	p.again = true
	c.trail.Log(p.Log).Error(nil, "the call is not made a second time", "node", c.of.node, "step", c.step, "why", why)
	p.Events.Event(c.of.node, Event{Warning: true, Reason: "StoreWentBack", Action: c.attempt, Of: c.trail, Note: why + "; the call is not made a second time"})
	return true
}
