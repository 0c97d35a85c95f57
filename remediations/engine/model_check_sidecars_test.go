package engine

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// checkSidecarWrite checks a write of a sidecar's record.
func (w *world) checkSidecarWrite(i *instance, cur *corev1.Node, c NodeChange) {
	for k, v := range c.Annotations {
		if !strings.HasPrefix(k, remediations.RepairPrefix+"sidecar-") || v == nil {
			continue
		}
		next, err := modelRegistry.DecodeRecord(*v)
		if err != nil || next.Pod == nil || remediations.SidecarKey(*next.Pod) != k {
			w.fail("wrote a sidecar's record that cannot be read: %v: %s", err, *v)
			continue
		}
		if len(c.Labels) > 0 || c.Unschedulable != nil || c.OutOfService != nil {
			w.fail("8: a sidecar's repair changed more of %s than its record", cur.Name)
		}
		was := modelRegistry.ReadJournal(cur).Records[k]
		if next.Intent == nil || sameIntent(was, next) {
			continue
		}
		if next.Intent.ID == "" {
			w.checkApprovalGivenBack(was, next)
			continue
		}
		w.checkSidecarIntent(i, cur, was, next)
	}
}

// checkApprovalGivenBack: an approval that is removed from the record must never have reached the
// sidecar. It does not count as an attempt.
func (w *world) checkApprovalGivenBack(was, next *remediations.Record) {
	if was == nil {
		w.fail("4: an attempt of %s was given back that was on no record", next.ID)
		return
	}
	for _, a := range w.gates.approvals {
		if a.intent == was.Intent.ID {
			w.fail("4: the attempt %s was given back, and it reached the sidecar of %s", was.Intent.ID, a.pod)
		}
	}
	if times := w.gates.intents[next.ID]; len(times) > 0 {
		w.gates.intents[next.ID] = times[:len(times)-1]
	}
}

// checkSidecarIntent checks a new intent.
func (w *world) checkSidecarIntent(i *instance, cur *corev1.Node, was, next *remediations.Record) {
	p, g := i.config.Policy(next.Policy), w.pod(next.Pod.Name)
	since, held := w.paused[cur.Name]
	times := w.gates.intents[next.ID]
	looked := 10*time.Second + w.gates.lookTakes + truncated
	switch {
	case next.Phase != remediations.PhaseActing:
		w.fail("4: a new intent of a sidecar in phase %s", next.Phase)
	case p == nil || p.Mode != remediations.ModeEnforce:
		w.fail("1: an intent for a sidecar in observe mode")
	case held:
		w.fail("9: an intent for a sidecar on %s, which a person has held since %s", cur.Name, since)
	case !w.cancelled[next.ID].IsZero():
		w.fail("9: an intent of the sidecar's repair %s, cancelled at %s", next.ID, w.cancelled[next.ID])
	case was != nil && was.ID != next.ID && was.Phase != remediations.PhaseExhausted:
		w.fail("2: the repair %s of a sidecar, which %s repairs", next.ID, was.ID)
	case w.inFlightHere(cur):
		w.fail("2: an intent for a sidecar on %s, which is under repair itself", cur.Name)
	case w.gates.tasks[next.Intent.Task] != "" || next.Intent.Task == "":
		w.fail("4: the task %q of %s was that of %s", next.Intent.Task, next.Intent.ID, w.gates.tasks[next.Intent.Task])
	case len(times) > 0 && time.Since(times[len(times)-1]) < 30*time.Second-truncated:
		w.fail("S0-7: the intent %s came %s after the one before", next.Intent.ID, time.Since(times[len(times)-1]))
	case p != nil && len(times) >= p.Plan[0].Attempts:
		w.fail("S0: the intent %s is attempt %d", next.Intent.ID, len(times)+1)
	case g == nil || g.node != cur.Name && time.Since(g.moved) > looked:
		w.fail("S0: an intent for a sidecar on %s, which does not host it", cur.Name)
	case g.held != "" && time.Since(g.heldSince) > looked:
		w.fail("S0-16: an intent for the sidecar of %s, held since %s", g.name, g.heldSince)
	case g.byHand && time.Since(g.since) > looked:
		w.fail("S0-16: an intent for the sidecar of %s, which somebody closed at %s", g.name, g.since)
	case g.open && time.Since(g.since) > looked:
		w.fail("S0-2: an intent for the sidecar of %s, ready since %s", g.name, g.since)
	case g.hidden && time.Since(g.hiddenSince) > looked:
		w.fail("S0-2: an intent for the sidecar of %s, which has not answered since %s", g.name, g.hiddenSince)
	}
	for k, r := range modelRegistry.ReadJournal(cur).Of(remediations.KindSidecar) {
		if r.Phase == remediations.PhaseActing && k != remediations.SidecarKey(*next.Pod) {
			w.fail("S0: two sidecars of %s are approved at once", cur.Name)
		}
	}
	w.gates.intents[next.ID] = append(times, time.Now())
	w.gates.tasks[next.Intent.Task] = next.Intent.ID
}

func (w *world) inFlightHere(n *corev1.Node) bool {
	r := modelRegistry.ReadJournal(n).Record
	return r != nil && r.Phase.InFlight()
}

// checkSidecarState counts the sidecars under repair, if one engine alone has led.
func (w *world) checkSidecarState(i *instance) {
	if w.gates == nil {
		return
	}
	busy := w.sidecarsInFlight()
	w.gates.most = max(w.gates.most, busy)
	if len(w.instances) == 1 && busy > i.config.Limits.Sidecars {
		w.fail("S0: %d sidecars are under repair", busy)
	}
}

// checkApproval checks a task when a sidecar receives it: invariants 1, 2, 4, 5, 6, 9.
func (w *world) checkApproval(i *instance, a Approval) {
	now := time.Now()
	w.checkName(a.Node)
	n := w.nodes[a.Node]
	if n == nil {
		return // deleted since its intent was written
	}
	r := modelRegistry.ReadJournal(n).Records[remediations.SidecarKey(a.Pod)]
	// Another leader may have settled the attempt since the last look.
	if r == nil || !r.Phase.InFlight() || r.Intent.Task != a.Task {
		w.fail("4: an approval of %s with the task %s, which is on no record", a.Pod, a.Task)
		return
	}
	for _, c := range w.gates.approvals {
		if c.task == a.Task || c.intent == r.Intent.ID && (!c.lost || c.by == i) {
			w.fail("4: the task %s reached the sidecar of %s twice", a.Task, a.Pod)
		}
	}
	w.gates.approvals = append(w.gates.approvals, approval{a.Pod.Name, a.Pod.UID, a.Node, a.Task, r.Intent.ID, now, i, false})
	if p := i.config.Policy(r.Policy); p == nil || p.Mode != remediations.ModeEnforce || p.Plan[0].Provider != a.Provider {
		w.fail("1: an approval of %s in observe mode, or by another provider: %s", a.Pod, a.Provider)
	}
	if late := now.Add(i.offset).Sub(r.Intent.At); late > 10*time.Second+truncated {
		w.fail("4: the approval of %s went out %s after its intent", a.Pod, late)
	}
	if since, held := w.paused[a.Node]; held && now.Sub(since) > lastWord {
		w.fail("9: an approval of %s, on a node held since %s", a.Pod, since)
	}
	if since, cancelled := w.cancelled[r.ID]; cancelled && now.Sub(since) > lastWord {
		w.fail("9: an approval of %s, cancelled at %s", a.Pod, since)
	}
	if w.inFlightHere(n) {
		w.fail("2: an approval of %s, and its node is under repair", a.Pod)
	}
	g := w.pod(a.Pod.Name)
	switch {
	case g == nil || g.uid != a.Pod.UID || g.node != a.Node:
		w.fail("S0: an approval of %s, which is another pod by now", a.Pod)
	case g.held != "":
		w.fail("S0-16: an approval of %s, held since %s", a.Pod, g.heldSince)
	}
	if !w.confirmed(i, r.Cause.Alert, now) {
		w.fail("5: an approval of %s, and no Alertmanager had said so in the last 30 s", a.Pod)
	}
	if w.sourceDead && now.Sub(w.sourceDied) > alertLife/2+lookedFor {
		w.fail("6: an approval of %s, and the source of its alert died at %s", a.Pod, w.sourceDied)
	}
}

// checkSidecarEnd checks invariant 7 for a sidecar.
func (w *world) checkSidecarEnd(cur *corev1.Node, e remediations.Entry) {
	w.gates.ended = append(w.gates.ended, e)
	was := modelRegistry.ReadJournal(cur).Records[remediations.RepairPrefix+e.Target]
	switch {
	case was == nil || was.ID != e.ID:
		w.fail("7: the sidecar's repair %s ended, and %s carries no such record", e.ID, cur.Name)
		return
	case e.Outcome != remediations.OutcomeRecovered && e.Outcome != remediations.OutcomeSelfRecovered:
		return
	}
	g := w.pod(was.Pod.Name)
	if g != nil && g.uid == was.Pod.UID && !g.open && time.Since(g.since) > 16*time.Second+w.gates.lookTakes {
		w.fail("7: %s of the sidecar of %s, closed since %s", e.Outcome, was.Pod, g.since)
	}
	if g == nil || (g.uid != was.Pod.UID && time.Since(g.since) > 16*time.Second+w.gates.lookTakes) {
		w.fail("7: %s of the sidecar of %s, which is another pod", e.Outcome, was.Pod)
	}
	if e.Outcome == remediations.OutcomeRecovered && was.Intent.Outcome == remediations.CallRefused {
		w.fail("7: Recovered, and the sidecar of %s refused", was.Pod)
	}
}
