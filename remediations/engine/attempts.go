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

// attempts has, by ID, each attempt whose slot this process reserved or whose call it made. An
// attempt is one call of a repair's step. A slot is the repair's place in the ledger, and counts
// against the limits. The call of an attempt is never made twice, even if the Node no longer shows
// the attempt.
type attempts map[string]attempted

type attempted struct {
	at     time.Time
	called bool
	// slot is the time at which another process reserved this attempt's slot in the ledger. It is
	// zero if this process reserved it.
	slot time.Time
	// repair, node and uid identify the attempt's repair and Node. done is the number of attempts
	// in the repair's record, including this attempt. If node is empty, the engine no longer checks
	// whether the API server has lost this attempt, for example after a restore of etcd.
	repair, node string
	uid          types.UID
	done         int
}

// reserving remembers an attempt right before its slot in the ledger is reserved. l is the ledger
// before the slot is reserved.
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

// dismiss excludes the selected attempts from the function lost, because their records may be
// missing for a good reason.
func (a attempts) dismiss(of func(id string, one attempted) bool) {
	for id, one := range a {
		if of(id, one) {
			one.node = ""
			a[id] = one
		}
	}
}

// calling notes that the attempt's call is made now, and returns an empty string. If the call must
// not be made, it returns the reason instead.
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

// lost returns the IDs of the attempts whose calls this process made after the given time, and that
// their Nodes no longer show.
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

// twice reports whether the attempt's call may already have been made. If so, it records the
// outcome as unknown and sends an Event, and the caller must not make the call. Otherwise it
// records that the call is made now.
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
