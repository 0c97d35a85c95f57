package engine

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// truncated is what a record's times lose: it keeps whole seconds.
const truncated = time.Second

// checkName is invariant 10: a name that was never a Node's reaches no port.
func (w *world) checkName(name string) {
	if !w.known[name] {
		w.fail("10: the name %q reached a port, and no Node ever bore it", name)
	}
}

// checkWrite asks of every write to a Node whether it may be.
func (w *world) checkWrite(i *instance, cur *corev1.Node, c NodeChange) {
	for k, v := range c.Annotations {
		switch {
		case remediations.Owned(k):
		case k == remediations.ResetKey && v == nil:
		case k == remediations.PauseKey && v == nil:
			if p, err := remediations.ParsePause(cur.Annotations[k]); err != nil || p.Until.IsZero() || time.Now().Before(p.Until) {
				w.fail("9: the pause %q of %s was removed before its time", cur.Annotations[k], cur.Name)
			}
		default:
			w.fail("1: wrote %s on %s, which is not Drydock's", k, cur.Name)
		}
	}
	for k := range c.Labels {
		if k != remediations.PhaseLabel {
			w.fail("1: wrote the label %s on %s", k, cur.Name)
		}
	}
	w.checkCordon(cur, c)
	w.checkRecord(i, cur, c)
	if v := c.Annotations[remediations.HistoryKey]; v != nil {
		e := remediations.DecodeHistory(*v)[0]
		w.ended = append(w.ended, e)
		w.checkEnd(i, cur, e)
	}
}

// checkCordon is invariants 1 and 8.
func (w *world) checkCordon(cur *corev1.Node, c NodeChange) {
	if c.Unschedulable == nil {
		return
	}
	by := w.machines[cur.Name].cordonedBy
	switch {
	case w.config.Policies[0].Mode != remediations.ModeEnforce:
		w.fail("1: changed spec.unschedulable of %s in observe mode", cur.Name)
	case *c.Unschedulable && cur.Spec.Unschedulable:
		w.fail("8: cordoned %s, which %q had cordoned", cur.Name, by)
	case !*c.Unschedulable && by != "drydock":
		w.fail("8: took back the cordon of %s, which is %q's", cur.Name, by)
	}
}

// checkRecord is what must hold when an intent is written: invariants 1, 3, 4, 9.
func (w *world) checkRecord(i *instance, cur *corev1.Node, c NodeChange) {
	v := c.Annotations[remediations.NodeRepairKey]
	if v == nil {
		return
	}
	next, err := remediations.DecodeRecord(*v)
	if err != nil {
		w.fail("wrote a record that cannot be read: %v: %s", err, *v)
		return
	}
	if c.Labels[remediations.PhaseLabel] == nil || *c.Labels[remediations.PhaseLabel] != string(next.Phase) {
		w.fail("the label of %s does not say %s", cur.Name, next.Phase)
	}
	was := remediations.ReadJournal(cur).Record
	if next.Intent == nil || (was != nil && was.Intent != nil && was.Intent.ID == next.Intent.ID) {
		return
	}
	if next.Phase != remediations.Acting {
		w.fail("4: a new intent in phase %s", next.Phase)
	}
	if w.config.Policies[0].Mode != remediations.ModeEnforce {
		w.fail("1: an intent in observe mode on %s", cur.Name)
	}
	if since, held := w.paused[cur.Name]; held {
		w.fail("9: an intent on %s, which a person has held since %s", cur.Name, since)
	}
	if cur.Spec.Unschedulable {
		w.fail("8: an intent on %s, which is cordoned", cur.Name)
	}
	if time.Since(next.Intent.At) > 30*time.Second && i.stall == 0 {
		w.fail("4: an intent of %s was written at %s", next.Intent.At, time.Now())
	}
}

// checkState is invariants 3 and 11, of all Nodes at once.
func (w *world) checkState() {
	var flying []string
	for _, n := range w.nodes {
		if r := remediations.InFlight(n); r != nil {
			flying = append(flying, n.Name)
		}
		alerts, size := 0, 0
		for k, v := range n.Annotations {
			if strings.HasPrefix(k, remediations.AlertPrefix) {
				alerts++
			}
			if remediations.Relevant(k) {
				size += len(k) + len(v)
			}
		}
		if alerts > remediations.MaxAlertsPerNode || size > remediations.MaxBytesPerNode || len(remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])) > 30 {
			w.fail("11: %s carries %d alerts, %d bytes", n.Name, alerts, size)
		}
	}
	if limit := w.config.Limits.Concurrent.Of(len(w.nodes)); len(flying) > limit {
		slices.Sort(flying)
		w.fail("3: %v are in flight at once, limits.concurrent is %d", flying, limit)
	}
}

// checkCall is what must hold when the provider hears of an attempt: invariants 1, 3, 4, 5, 6, 9, 10.
func (w *world) checkCall(i *instance, m Machine) {
	w.checkName(m.Node)
	now := time.Now()
	if w.config.Policies[0].Mode != remediations.ModeEnforce {
		w.fail("1: a call for %s in observe mode", m.Node)
	}
	n := w.nodes[m.Node]
	if n == nil {
		return // deleted since its intent was written
	}
	r := remediations.ReadJournal(n).Record
	if r == nil || r.Intent == nil {
		if n.Annotations[remediations.NodeRepairKey] == "" && w.machines[m.Node].providerID == m.ProviderID {
			w.fail("4: a call for %s, which has no intent", m.Node)
		}
		return
	}
	for _, c := range w.calls {
		if c.intent == r.Intent.ID {
			w.fail("4: the intent %s reached the provider twice", c.intent)
		}
	}
	w.calls = append(w.calls, rebootCall{node: m.Node, intent: r.Intent.ID, at: now})
	if late := now.Sub(r.Intent.At); late > intentGood+truncated {
		w.fail("4: the call for %s went out %s after its intent", r.Intent.ID, late)
	}
	if since, held := w.paused[m.Node]; held && since.Before(r.Intent.At) {
		w.fail("9: a call for %s, held since %s", m.Node, since)
	}
	if !w.confirmed(i, r.Cause.Alert, now) {
		w.fail("5: a call for %s, and no Alertmanager had said so in the last 30 s", m.Node)
	}
	w.checkState()
}

// confirmed is invariant 5, computed here in the plainest way from what the instance was told.
func (w *world) confirmed(i *instance, fp string, now time.Time) bool {
	for _, l := range w.looks {
		if l.by != i || now.Sub(l.at) > 30*time.Second {
			continue
		}
		active, muted, dead := false, false, false
		for _, r := range l.replicas {
			a, has := r.Alerts[fp]
			switch {
			case r.Err != nil:
				dead = true
			case has && len(a.SilencedBy)+len(a.InhibitedBy)+len(a.MutedBy) > 0:
				muted = true
			case has && a.Active && r.Watchdog:
				active = true
			}
			muted = muted || r.BlindBy != ""
		}
		if active && !muted && !(dead && w.config.RequireAll) {
			return true
		}
	}
	return false
}

// checkEnd is invariant 7.
func (w *world) checkEnd(i *instance, cur *corev1.Node, e remediations.Entry) {
	was := remediations.ReadJournal(cur).Record
	if was == nil || was.ID != e.ID {
		w.fail("7: the repair %s ended, and %s carries no such record", e.ID, cur.Name)
		return
	}
	if e.Outcome != remediations.Recovered && e.Outcome != remediations.SelfRecovered {
		return
	}
	m := w.machines[cur.Name]
	if remediations.ReadyCondition(cur).Status != ready {
		w.fail("7: %s of %s, which is not Ready", e.Outcome, cur.Name)
	}
	if time.Since(m.renewed()) > leaseFor {
		w.fail("7: %s of %s, whose lease is stale", e.Outcome, cur.Name)
	}
	if e.Outcome == remediations.Recovered && (was.Intent == nil || was.Intent.BootID == cur.Status.NodeInfo.BootID) {
		w.fail("7: Recovered, and the boot ID of %s is the old one", cur.Name)
	}
	seenGone := false
	for _, l := range w.looks {
		if l.by != i || time.Since(l.at) > 30*time.Second {
			continue
		}
		alive, has := false, false
		for _, r := range l.replicas {
			_, h := r.Alerts[was.Cause.Alert]
			alive, has = alive || (r.Err == nil && r.Watchdog), has || h
		}
		seenGone = seenGone || (alive && !has)
	}
	if !seenGone {
		w.fail("7: %s of %s, and nobody said that its alert is gone", e.Outcome, cur.Name)
	}
}

// overdue is the rest of invariant 7: no phase but Exhausted outlives its deadline by more than a pass.
func (w *world) overdue(slack time.Duration) {
	for name := range w.nodes {
		if r := w.record(name); r != nil && r.Phase != remediations.Exhausted && time.Since(r.Deadline) > slack {
			w.fail("7: %s is %s since %s, its deadline was %s", name, r.Phase, r.Since, r.Deadline)
		}
	}
}
