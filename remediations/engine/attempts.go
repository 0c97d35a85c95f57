package engine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// attemptsKept is how long an attempt is remembered: longer than any repair may take.
const attemptsKept = 2 * remediations.PendingFor

// attempts are those that this process called or took a slot for. No attempt is called twice,
// whatever the Nodes show.
type attempts map[string]attempted

type attempted struct {
	at     time.Time
	called bool
	// slot is when another process took the slot that names the attempt. Zero: this process took
	// it.
	slot time.Time
	// repair, node and uid identify the attempt's repair and Node. missed: the attempt was found
	// missing in the ledger and on the Node.
	repair, node string
	uid          types.UID
	missed       bool
}

// reserving notes an attempt before its slot is taken. l is the ledger before that.
func (a attempts) reserving(l *ledger.Ledger, n *corev1.Node, attempt string, now time.Time) {
	for id, was := range a {
		if now.Sub(was.at) > attemptsKept {
			delete(a, id)
		}
	}
	if _, known := a[attempt]; known {
		return
	}
	it := attempted{at: now, repair: repairOfAttempt(attempt), node: n.Name, uid: n.UID}
	if slot := l.SlotOf(n.Name); slot != nil && slot.Attempt == attempt {
		it.slot = slot.Since
	}
	a[attempt] = it
}

// calling notes the call. It returns why the call must not be made. Empty: it may be made.
func (a attempts) calling(attempt string, now time.Time) string {
	was := a[attempt]
	switch {
	case was.called:
		return fmt.Sprintf("this process already called attempt %s at %s, and its Node does not show it any more", attempt, remediations.Instant(was.at).Format(time.RFC3339))
	case !was.slot.IsZero():
		return fmt.Sprintf("the ledger names attempt %s since %s, so it may have been called, and its Node does not show it", attempt, remediations.Instant(was.slot).Format(time.RFC3339))
	}
	was.at, was.called = now, true
	a[attempt] = was
	return ""
}

// repairOfAttempt returns the repair's ID, which is the first part of the attempt's ID.
func repairOfAttempt(attempt string) string {
	repair, _, _ := strings.Cut(attempt, "-")
	return repair
}

// missing returns a message about an attempt that this process called after the given time, if
// neither the ledger nor its Node shows it. Empty: there is none. If only one of the two lost the
// attempt, the other one still has it. That both lost it shows that the store went back, even if
// the restore raised all versions. Each attempt is found once.
func (a attempts) missing(l *ledger.Ledger, after time.Time, shown func(node string) (*corev1.Node, remediations.Journal)) string {
	for id, was := range a {
		if !was.called || was.missed || was.node == "" || was.at.Before(after) || l.Knows(was.repair) {
			continue
		}
		n, j := shown(was.node)
		if n == nil || n.UID != was.uid || j.Malformed != nil || j.Knows(was.repair) {
			continue
		}
		was.missed = true
		a[id] = was
		return fmt.Sprintf("this process called attempt %s on Node %s at %s, and neither the Node nor the ledger names it", id, was.node, remediations.Instant(was.at).Format(time.RFC3339))
	}
	return ""
}

// twice treats an attempt that may have been called before as a call with unknown outcome. The call
// is not made.
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
