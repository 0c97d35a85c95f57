package engine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// attemptsKept is how long an attempt is remembered. It is longer than any repair may take.
const attemptsKept = 2 * remediations.PendingFor

// attempts has, by ID, the calls that this process made or is about to make. A call is never made
// twice, even if the Node no longer shows its attempt.
type attempts map[string]attempted

type attempted struct {
	at     time.Time
	called bool
	// slot is zero if this process itself reserved the slot in the ledger.
	slot time.Time
	// done is the number of attempts in the repair's record, including this one. If node is empty,
	// this attempt is no longer checked for a loss in the API server.
	repair, node string
	uid          types.UID
	done         int
}

// reserving runs right before the attempt's slot is reserved. l is the ledger from before that.
func (a attempts) reserving(l *ledger.Ledger, n *corev1.Node, r *remediations.Record, now time.Time) {
	attempt := r.Intent.ID
	for id, was := range a {
		if now.Sub(was.at) > attemptsKept {
			delete(a, id)
		}
	}
	if _, known := a[attempt]; known {
		return
	}
	it := attempted{at: now, repair: r.ID, node: n.Name, uid: n.UID, done: len(r.Done)}
	for _, slot := range l.Slots {
		if slot.Attempt == attempt {
			it.slot = slot.Since
		}
	}
	a[attempt] = it
}

// dismiss excludes attempts from lost: their records may be missing for a good reason.
func (a attempts) dismiss(of func(id string, one attempted) bool) {
	for id, one := range a {
		if of(id, one) {
			one.node = ""
			a[id] = one
		}
	}
}

// calling notes that the call is made now. If it must not be made, calling returns why.
func (a attempts) calling(attempt string, now time.Time) string {
	was := a[attempt]
	switch {
	case was.called:
		return fmt.Sprintf("this process already made the call of attempt %s at %s, but its Node no longer shows the attempt", attempt, remediations.Instant(was.at).Format(time.RFC3339))
	case !was.slot.IsZero():
		return fmt.Sprintf("the ledger has a slot for attempt %s since %s, so its call may have been made, but its Node does not show the attempt", attempt, remediations.Instant(was.slot).Format(time.RFC3339))
	}
	was.at, was.called = now, true
	a[attempt] = was
	return ""
}

// lost returns the attempts that were called after that time and that their Nodes no longer show.
func (a attempts) lost(after time.Time, shown func(node string) (*corev1.Node, remediations.Journal)) (ids []string) {
	for id, was := range a {
		if !was.called || was.node == "" || was.at.Before(after) {
			continue
		}
		n, j := shown(was.node)
		if n == nil || n.UID != was.uid || j.Malformed != nil {
			continue
		}
		if r := j.UnderWay(was.repair); r != nil && len(r.Done) < was.done || r == nil && !j.Knows(was.repair) {
			ids = append(ids, id)
		}
	}
	return ids
}

// twice reports whether the call may already have been made. The caller must then not make it: its
// outcome is recorded as unknown.
func (p *pass) twice(c calling, m *targetMemory) bool {
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
