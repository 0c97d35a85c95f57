package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// lastWord is how long before a call a person's request may arrive and still be too late to stop
// it. It is the time of a round trip.
const lastWord = 100 * time.Millisecond

// checkCall checks a call when the provider receives it, by invariants 1, 4, 5, 6, 9 and 10.
func (w *world) checkCall(i *instance, step string, m Machine) {
	w.checkName(m.Node)
	now := time.Now()
	if of, known := w.of[repairOf(m.Attempt)]; known && of != m.ProviderID {
		w.fail("Machine: the attempt %s reached the machine %s, and its repair is of %s", m.Attempt, m.ProviderID, of)
	}
	n := w.nodes[m.Node]
	if n == nil {
		return // deleted since its intent was written
	}
	r := modelRegistry.ReadJournal(n).Record
	if r == nil || r.Intent == nil {
		if n.Annotations[remediations.NodeRepairKey] == "" && w.machines[m.Node].providerID == m.ProviderID {
			w.fail("4: a call for %s, which has no intent", m.Node)
		}
		return
	}
	if !i.enforces(r.Policy) {
		w.fail("1: a call for %s in observe mode", m.Node)
	}
	for _, c := range w.calls {
		if attemptOf(c.intent) == attemptOf(r.Intent.ID) && (!c.lost || c.by == i) {
			w.fail("4: the intent %s reached the provider twice, as %s, too", c.intent, r.Intent.ID)
		}
	}
	w.calls = append(w.calls, providerCall{node: m.Node, intent: r.Intent.ID, step: step, at: now, by: i})
	if step == "replace" {
		w.replacing[m.ProviderID] = r.ID
	}
	if late := now.Sub(r.Intent.At); late > 10*time.Second+truncated {
		w.fail("4: the call for %s went out %s after its intent", r.Intent.ID, late)
	}
	if since, held := w.paused[m.Node]; held && now.Sub(since) > lastWord {
		w.fail("9: a call for %s, held since %s", m.Node, since)
	}
	if since, cancelled := w.cancelled[r.ID]; cancelled && now.Sub(since) > lastWord {
		w.fail("9: a call for %s, cancelled at %s", r.ID, since)
	}
	if slices.Contains(r.Done.Texts(), "drain:1") && !n.Spec.Unschedulable && now.Sub(w.uncordoned[m.Node]) > lastWord {
		w.fail("9: a call for %s, which was drained, and uncordoned at %s", m.Node, w.uncordoned[m.Node])
	}
	if r.Cause.Request != "" && !w.unsilenced(i, m.Node, now) {
		w.fail("5: a call for %s, and nobody had said in the last 30 s that it is not silenced", m.Node)
	}
	if r.Cause.Request == "" && !w.confirmed(i, r.Cause.Alert, now) {
		w.fail("5: a call for %s, and no Alertmanager had said so in the last 30 s", m.Node)
	}
	p := i.config.PolicyOf(r.Policy, n)
	if since, well := w.unfounded[m.Node]; well && r.Cause.Request == "" && p != nil && !p.Witness.None && now.Sub(since) > lastWord {
		w.fail("5: a call for %s, and its Node shows no fault since %s", m.Node, since)
	}
	if r.Cause.Request == "" {
		w.checkConfirmed(n, w.machines[m.Node], p)
	}
	w.checkData(i, m.Node, now, lookedFor)
}

// witness notes since when a Node shows no fault. The check is simple, because each policy here is
// about a node that is not Ready, or is Broken, or has lost GPUs.
func (w *world) witness(name string) {
	if now, _ := strconv.Atoi(w.nodes[name].Labels[signs.GPUCountLabel]); w.gpus && now < fullGPUs {
		delete(w.unfounded, name)
		return
	}
	for _, c := range w.nodes[name].Status.Conditions {
		if (c.Type == corev1.NodeReady && c.Status != ready) || (c.Type == conditionBroken && c.Status == ready) {
			delete(w.unfounded, name)
			return
		}
	}
	if _, was := w.unfounded[name]; !was {
		w.unfounded[name] = time.Now()
	}
}

// checkData checks invariant 6: nothing is done while data is missing.
func (w *world) checkData(i *instance, node string, now time.Time, looked time.Duration) {
	if c := remediations.ReadyCondition(w.nodes[node]); c == nil && now.Sub(w.machines[node].since) > 2*behind+looked {
		w.fail("6: something was done to %s, which reports no Ready condition", node)
	}
	current := alertLife / 2 // two sendings of its alert are missed
	if r := w.record(node); r != nil && r.Cause.Request != "" {
		current = alertLife + 4*sendEvery // a person's request needs no alert: the Watchdog is missed
	}
	if w.sourceDead && now.Sub(w.sourceDied) > current+looked {
		w.fail("6: something was done to %s, and the source of its alert died at %s", node, w.sourceDied)
	}
	if len(w.nodes) < 3 {
		return
	}
	if !w.leasesFrozen.IsZero() && now.Sub(w.leasesFrozen) > leaseFor+looked {
		w.fail("6: something was done to %s, and no lease is renewed since %s", node, w.leasesFrozen)
	}
	if i.offset > 5*time.Minute || i.offset < -5*time.Minute {
		w.fail("6: something was done to %s by a Drydock whose clock is %s wrong", node, i.offset)
	}
	if w.always["heartbeats"] != "" && now.Sub(w.blindSince) > looked {
		w.fail("6: something was done to %s, and nobody can count the leases", node)
	}
}

// lookedFor is how old an engine's data may be when its call is made: ten seconds at the intent,
// and ten more until the call.
const lookedFor = 22 * time.Second

// unsilenced checks invariant 5 for a person's request. At least one Alertmanager has answered, and
// no answer shows a silenced or inhibited alert about the node.
func (w *world) unsilenced(i *instance, node string, now time.Time) bool {
	for _, l := range w.looks {
		if l.by != i || now.Sub(l.at) > 30*time.Second {
			continue
		}
		answered, muted, dead := false, false, false
		for _, r := range l.replicas {
			answered, dead, muted = answered || r.Err == nil, dead || r.Err != nil, muted || r.BlindBy != ""
			for _, a := range r.Alerts {
				muted = muted || (a.Labels["node"] == node && len(a.SilencedBy)+len(a.InhibitedBy)+len(a.MutedBy) > 0)
			}
		}
		if answered && !muted && (!dead || !i.config.RequireAll) {
			return true
		}
	}
	return false
}

// confirmed checks invariant 5 in the simplest way, from the answers that the instance received.
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
			case has && a.Active && r.Watchdog && (i.config.Receiver == "" || slices.Contains(a.Receivers, i.config.Receiver)):
				active = true
			}
			muted = muted || r.BlindBy != ""
		}
		if active && !muted && (!dead || !i.config.RequireAll) {
			return true
		}
	}
	return false
}

// attemptOf returns the attempt of the intent. An attempt that was given back gets another intent
// and stays the same attempt.
func attemptOf(intent string) string {
	parts := strings.SplitN(intent, "-", 4)
	return strings.Join(parts[:min(3, len(parts))], "-")
}
