package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// Each violation begins with the number of its invariant in DESIGN, or with the name of the guard
// that should have prevented it.

// truncated is what a record's times lose, because the record keeps whole seconds.
const truncated = time.Second

// behind is how old an engine's knowledge may be: three seconds of its cache, and a pass.
const behind = 5 * time.Second

// checkName checks invariant 10: a name that was never a Node's reaches no port.
func (w *world) checkName(name string) {
	if !w.known[name] {
		w.fail("10: the name %q reached a port, and no Node ever bore it", name)
	}
}

// checkStops: the answers of a single machine must not stop a policy.
func (w *world) checkStops(data map[string]string) {
	l, err := ledger.Decode(data)
	if err != nil {
		return
	}
	for name := range l.Status.Stopped {
		if w.config.Policy(name) != nil && len(w.accountRefused) < 2 {
			w.fail("PolicyFailing: a policy is stopped, and the account was refused for the machines %v alone", slices.Collect(maps.Keys(w.accountRefused)))
		}
	}
}

// checkWrite checks whether a write to a Node is allowed.
func (w *world) checkWrite(i *instance, cur *corev1.Node, c NodeChange) {
	for k, v := range c.Annotations {
		switch {
		case remediations.Owned(k):
		case k == remediations.ResetKey && v == nil:
		case (k == remediations.ApproveKey || k == remediations.RequestKey || k == remediations.CancelKey) && v == nil:
		case k == remediations.BreakGlassKey && v == nil:
			w.breakGlassRemoved(cur)
		case k == remediations.PauseKey && v != nil && cur.Annotations[k] == "" && len(cur.Annotations[remediations.CancelKey]) != 6:
			w.paused[cur.Name] = time.Now() // the writer wanted Drydock to stop, and made a mistake
		case k == remediations.PauseKey && v == nil:
			if p, err := remediations.ParsePause(cur.Annotations[k]); err != nil || p.Until.IsZero() || time.Now().Before(p.Until) {
				w.fail("9: the pause %q of %s was removed before its time", cur.Annotations[k], cur.Name)
			}
		case slices.Contains(announcements, k): // see checkAnnouncements
		default:
			w.fail("1: wrote %s on %s, which is not Drydock's", k, cur.Name)
		}
	}
	for k := range c.Labels {
		if k != remediations.PhaseLabel {
			w.fail("1: wrote the label %s on %s", k, cur.Name)
		}
	}
	if _, done := c.Annotations[remediations.ResetKey]; done && c.Labels[remediations.PhaseLabel] == nil {
		if _, dropped := c.Annotations[remediations.NodeRepairKey]; dropped {
			delete(w.begun, ledger.Machine(cur)) // a person's reset forgets the counts
			clear(w.cured)
		}
	}
	w.checkMachine(cur, c)
	w.checkCordon(i, cur, c)
	w.checkAnnouncements(i, cur, c)
	w.checkMark(i, cur, c)
	w.checkRecord(i, cur, c)
	w.checkSidecarWrite(i, cur, c)
	w.checkLeaderWrite(i, cur, c)
	w.checkLabel(cur, c)
	if v := c.Annotations[remediations.HistoryKey]; v != nil {
		e := remediations.DecodeHistory(*v)[0]
		if old := remediations.DecodeHistory(cur.Annotations[remediations.HistoryKey]); len(old) > 0 && old[0].ID == e.ID && (old[0].Ended.Equal(e.Ended) || wrong(old[0].Ended)) {
			w.checkRelapse(cur, old, remediations.DecodeHistory(*v))
			return
		}
		if w.ofAnotherMachine(cur, e) {
			return
		}
		if e.Pod != "" {
			w.checkSidecarEnd(cur, e)
			return
		}
		if e.Location != "" {
			w.checkLeaderEnd(i, cur, e)
			return
		}
		w.ended = append(w.ended, e)
		w.settled(e.ID)
		w.checkEnd(i, cur, e)
	}
}

// checkRelapse: without a new entry, a history may change only because a cure relapsed or a
// person reset the machine.
func (w *world) checkRelapse(cur *corev1.Node, old, next []remediations.Entry) {
	for i := range next {
		if i < len(old) {
			next[i].Left = old[i].Left // what the ended repair left on the Node may be undone
			if _, resets := cur.Annotations[remediations.ResetKey]; resets && next[i].Reset {
				next[i].Reset = old[i].Reset
			}
			if wrong(old[i].Began) && !wrong(next[i].Began) {
				next[i].Began = old[i].Began
			}
			if wrong(old[i].Ended) && !wrong(next[i].Ended) {
				next[i].Ended = old[i].Ended
			}
		}
		if i < len(old) && next[i].Outcome == remediations.OutcomeRelapsed && (old[i].Outcome == remediations.OutcomeRecovered || old[i].Outcome == remediations.OutcomeSelfRecovered) {
			next[i].Outcome = old[i].Outcome
		}
	}
	if remediations.EncodeEntries(next) != remediations.EncodeEntries(old) {
		w.fail("the history of %s was written over", cur.Name)
	}
}

// wrong reports whether the time was written by a clock that was ahead. A process with a correct
// clock may correct such a time.
func wrong(t time.Time) bool { return time.Until(t) > 30*time.Second }

// checkLabel: after each write of a record the label matches the records. An unreadable record
// gives no label.
func (w *world) checkLabel(cur *corev1.Node, c NodeChange) {
	_, node := c.Annotations[remediations.NodeRepairKey]
	_, leader := c.Annotations[remediations.LocationKey]
	if !node && !leader {
		return
	}
	after, labels := maps.Clone(cur.Annotations), maps.Clone(cur.Labels)
	apply(after, c.Annotations)
	apply(labels, c.Labels)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: after}}
	if want := string(modelRegistry.LabelFor(after)); labels[remediations.PhaseLabel] != want && modelRegistry.ReadJournal(n).Malformed == nil {
		w.fail("the label of %s says %q and not %q", cur.Name, labels[remediations.PhaseLabel], want)
	}
}

// checkCordon checks invariants 1 and 8. In observe mode, too, Drydock undoes what it did while it
// enforced.
func (w *world) checkCordon(i *instance, cur *corev1.Node, c NodeChange) {
	if c.Unschedulable == nil {
		return
	}
	by := w.machines[cur.Name].cordonedBy
	if !*c.Unschedulable {
		if since, held := w.paused[cur.Name]; held {
			w.fail("9: uncordoned %s, held since %s", cur.Name, since)
		}
		if by != "drydock" {
			w.fail("8: took back the cordon of %s, which is %q's", cur.Name, by)
		}
		return
	}
	r, err := modelRegistry.DecodeRecord(*c.Annotations[remediations.NodeRepairKey])
	switch {
	case err != nil || len(r.Undo) == 0:
		w.fail("8: cordoned %s, and its record does not say so", cur.Name)
	case !i.enforces(r.Policy):
		w.fail("1: cordoned %s in observe mode", cur.Name)
	case cur.Spec.Unschedulable:
		w.fail("8: cordoned %s, which %q had cordoned", cur.Name, by)
	}
}

func (i *instance) enforces(policy string) bool {
	p := i.config.PolicyOf(policy, &corev1.Node{})
	return p != nil && p.Mode == remediations.ModeEnforce
}

// checkRecord checks a write of a record: invariants 1, 2, 4, 8, 9, and the limits of a new intent.
func (w *world) checkRecord(i *instance, cur *corev1.Node, c NodeChange) {
	v := c.Annotations[remediations.NodeRepairKey]
	if v == nil {
		return
	}
	next, err := modelRegistry.DecodeRecord(*v)
	if err != nil {
		w.fail("wrote a record that cannot be read: %v: %s", err, *v)
		return
	}
	was := modelRegistry.ReadJournal(cur).Record
	w.checkPassed(i, cur, was, next)
	if !next.Phase.InFlight() {
		w.settled(next.ID)
	}
	if next.Intent != nil && next.Intent.ID == "" { // an attempt was given back
		if was != nil && was.Intent != nil && slices.ContainsFunc(w.calls, func(c providerCall) bool { return c.intent == was.Intent.ID }) {
			w.fail("4: the attempt %s was given back, and it reached the provider", was.Intent.ID)
		}
		return
	}
	again := was != nil && was.Phase == remediations.PhasePending && next.Phase == remediations.PhaseActing // a drain that was held
	if _, resets := cur.Annotations[remediations.ResetKey]; resets && next.Intent != nil {
		w.gpusAt[next.ID] = next.Intent.GPUs // a person accepts the number of GPUs
	}
	if next.Intent == nil || (sameIntent(was, next) && !again) {
		return
	}
	switch since, held := w.paused[cur.Name]; {
	case next.Phase != remediations.PhaseActing:
		w.fail("4: a new intent in phase %s", next.Phase)
	case !i.enforces(next.Policy):
		w.fail("1: an intent in observe mode on %s", cur.Name)
	case !w.cancelled[next.ID].IsZero():
		w.fail("9: an intent of the repair %s, cancelled at %s", next.ID, w.cancelled[next.ID])
	case held:
		w.fail("9: an intent on %s, which a person has held since %s", cur.Name, since)
	case cur.Spec.Unschedulable && len(next.Undo) == 0 && !i.config.PolicyOf(next.Policy, cur).RepairCordoned:
		w.fail("8: an intent on %s, which is cordoned", cur.Name)
	case was != nil && was.Phase.InFlight() && was.ID != next.ID:
		w.fail("2: the repair %s on %s, where %s is in flight", next.ID, cur.Name, was.ID)
	case len(modelRegistry.ReadJournal(cur).OtherRepairs) > 0:
		w.fail("2: an intent on %s, where a sidecar's repair is in flight", cur.Name)
	case time.Since(next.Intent.At)+i.offset > 30*time.Second && i.stall == 0:
		w.fail("4: an intent of %s was written at %s", next.Intent.At, time.Now())
	}
	w.checkIntent(i, cur, was, next)
}

// checkIntent checks what the guards promise of a new intent, beyond what holds for every side
// effect.
func (w *world) checkIntent(i *instance, cur *corev1.Node, was, next *remediations.Record) {
	p := i.config.PolicyOf(next.Policy, cur)
	if p == nil {
		return // checkRecord reports it
	}
	machine := ledger.Machine(cur)
	if was == nil || was.ID != next.ID || was.Intent == nil {
		if p.Approval && cur.Annotations[remediations.ApproveKey] != next.ID {
			w.fail("AwaitingApproval: %s began to act on %s, and nobody approved it", next.ID, cur.Name)
		}
		w.checkRelapsed(i, cur, p, next)
		w.gpusAt[next.ID], _ = strconv.Atoi(cur.Labels[signs.GPUCountLabel])
		// If an alert began again after the last look, it still counts as the alert of that look.
		// If its source claims an early start, the alert is as old as Drydock's first reading of
		// it, even if it ended for a moment in between.
		seen, _ := remediations.DecodeAlert(remediations.AlertPrefix+next.Cause.Alert, cur.Annotations[remediations.AlertPrefix+next.Cause.Alert])
		m := w.machines[cur.Name]
		anew := (m.backdated || time.Since(m.since) < lookedFor) && !seen.ReceivedAt.IsZero() && time.Since(seen.ReceivedAt)+truncated >= p.For
		if !m.well() && next.Cause.Alert == fingerprintOf(cur.Name) && time.Since(m.since)+truncated < p.For && !anew {
			w.fail("TooYoung: %s began on %s, the alert of which fires for %s, and for is %s", next.ID, cur.Name, time.Since(m.since), p.For)
		}
		if last, ok := w.finished[cur.Name+"/"+p.Name]; ok && time.Since(last)+truncated < p.Cooldown {
			w.fail("Cooldown: %s began on %s, the last repair ended at %s", next.ID, cur.Name, last)
		}
		recent := 0
		for _, at := range w.begun[machine] {
			if time.Since(at) < i.config.Limits.RepairsWindow-truncated {
				recent++
			}
		}
		if recent >= i.config.Limits.RepairsPerNode {
			w.fail("RepairsSpent: %s is repair %d of %s", next.ID, recent+1, machine)
		}
		w.begun[machine] = append(w.begun[machine], time.Now())
	}
	w.checkNodeIntent(cur.Name)
	w.checkMarked(cur, next)
	if modelConfig().Remediation(next.Step.Name).Disruptive {
		w.checkWentBack(i, cur.Name, "an intent to "+next.Step.Name)
	}
	if id := w.replacing[machine]; id != "" && id != next.ID {
		w.fail("2: an intent on %s, the machine of which %s has replaced", cur.Name, id)
	}
	w.checkLimits(i, cur, next)
	if modelConfig().Remediation(next.Step.Name).ClusterWide {
		w.checkWide(i, next)
	} else {
		w.checkBreaker(cur, next)
	}
}

// checkState checks invariant 11, for all Nodes at once.
func (w *world) checkState() {
	for _, n := range w.nodes {
		alerts, size := 0, 0
		for k, v := range n.Annotations {
			if strings.HasPrefix(k, remediations.AlertPrefix) {
				alerts++
			}
			if remediations.Relevant(k) {
				size += len(k) + len(v)
			}
		}
		if alerts > remediations.MaxAlertsPerNode || size > remediations.MaxBytesPerNode || len(remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])) > 40 {
			w.fail("11: %s carries %d alerts, %d bytes", n.Name, alerts, size)
		}
	}
}

// overdue checks the last sentence of invariant 7: only the phase Exhausted may outlive its
// deadline by more than a pass.
func (w *world) overdue(slack time.Duration) {
	for name := range w.nodes {
		w.checkPlaceOf(name, slack)
		if r := w.record(name); r != nil && r.Phase != remediations.PhaseExhausted && time.Since(r.Deadline) > slack {
			w.fail("7: %s is %s since %s, its deadline was %s", name, r.Phase, r.Since, r.Deadline)
		}
	}
	for k, r := range w.sidecarRecords() {
		if r.Phase != remediations.PhaseExhausted && time.Since(r.Deadline) > slack {
			w.fail("7: the sidecar %s is %s since %s, its deadline was %s", k, r.Phase, r.Since, r.Deadline)
		}
	}
	for k, r := range w.leaderRecords() {
		if r.Phase != remediations.PhaseExhausted && time.Since(r.Deadline) > slack {
			w.fail("7: the leader's repair on %s is %s since %s, its deadline was %s", k, r.Phase, r.Since, r.Deadline)
		}
	}
}
