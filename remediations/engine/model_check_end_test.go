package engine

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// curedAt is a cure of a Node. Its fault may come back as a relapse.
type curedAt struct {
	at   time.Time
	node types.UID
	last remediations.StepRef
}

// cures notes how a repair of the Node ended.
func (w *world) cures(i *instance, cur *corev1.Node, e remediations.Entry) {
	key := cur.Name + "/" + e.Policy
	delete(w.cured, key)
	if e.Last != nil && e.Request == "" && i.offset == 0 {
		w.cured[key] = curedAt{time.Now(), cur.UID, *e.Last}
	}
}

// checkRelapsed: if an alert comes back on the same Node soon after a cure, the plan must not start
// from its beginning.
func (w *world) checkRelapsed(i *instance, cur *corev1.Node, p *remediations.Policy, next *remediations.Record) {
	c, known := w.cured[cur.Name+"/"+p.Name]
	if !known || c.node != cur.UID || i.offset != 0 || next.Cause.Alert == "" || time.Since(c.at)+time.Minute > p.RelapseWindow {
		return
	}
	if c.last.Index >= len(p.Plan) || p.Plan[c.last.Index].Name != c.last.Name || !modelConfig().Remediation(next.Step.Name).Once {
		return
	}
	if next.Step.Index < c.last.Index || (next.Step.Index == c.last.Index && next.Step.Attempt <= c.last.Attempt) {
		w.fail("Relapse: %s issues %s on %s, which was cured %s before by %s", next.ID, next.Step, cur.Name, time.Since(c.at), c.last)
	}
}

// checkEnd checks invariant 7.
func (w *world) checkEnd(i *instance, cur *corev1.Node, e remediations.Entry) {
	if e.Outcome == remediations.OutcomeObserved {
		w.checkObserved(cur, e)
		return
	}
	w.cures(i, cur, e)
	if len(e.Steps) > 0 {
		w.finished[cur.Name+"/"+e.Policy] = time.Now()
	}
	was := modelRegistry.ReadJournal(cur).Record
	if e.ID == "unreadable" {
		return // a person dropped an unreadable record
	}
	if o := w.orphan(e.ID); o != nil && (was == nil || was.ID != e.ID) {
		if e.Outcome == remediations.OutcomeRecovered {
			w.checkSuccessor(cur, o)
		}
		was = &o.Record
	}
	if e.After != "" && e.Outcome == remediations.OutcomeExhausted && len(e.Steps) == 0 {
		return // earlier repairs have left nothing of the plan
	}
	if was == nil || was.ID != e.ID {
		if awake := time.Since(i.asleepUntil); awake >= 0 && awake < behind && len(w.instances) > 1 {
			return // it does not know yet that a new leader has ended the repair of a deleted Node
		}
		w.fail("7: the repair %s ended, and %s carries no such record", e.ID, cur.Name)
		return
	}
	if e.Outcome != remediations.OutcomeRecovered && e.Outcome != remediations.OutcomeSelfRecovered {
		return
	}
	m := w.machines[cur.Name]
	if c := remediations.ReadyCondition(cur); c == nil || c.Status != ready {
		w.fail("7: %s of %s, which is not Ready", e.Outcome, cur.Name)
	}
	w.checkGPUs(cur, e)
	// If a person requests a repair of a node that shows no fault, no witness names a sign that
	// must be gone. Then the node counts as healthy since it became Ready.
	onRequest, well := strings.HasPrefix(e.Request, "remediation/"), m.wellSince
	if onRequest && m.readySince.Before(well) {
		well = m.readySince
	}
	if m.broken > 0 && time.Since(m.since) > lookedFor && !onRequest {
		w.fail("7: %s of %s, which is as broken as before", e.Outcome, cur.Name)
	}
	if time.Since(w.renewed(m)) > leaseFor+lookedFor {
		w.fail("7: %s of %s, whose lease is stale", e.Outcome, cur.Name)
	}
	switch {
	case e.Outcome == remediations.OutcomeRecovered && e.Steps[len(e.Steps)-1].Name == "powerOff":
		w.fail("7: Recovered, and %s was only switched off", cur.Name)
	case e.Outcome != remediations.OutcomeRecovered || was.Step.Name == "replace":
	case e.Steps[len(e.Steps)-1].Name == "restart-kubelet":
		if was.Intent.Outcome != remediations.CallAccepted {
			w.fail("7: Recovered, and nobody saw the kubelet of %s restarted", cur.Name)
		}
		if w.renewed(m).Before(was.Intent.At) {
			w.fail("7: Recovered, and the kubelet of %s has said nothing since its restart", cur.Name)
		}
	case slices.Contains(askingSteps, e.Steps[len(e.Steps)-1].Name):
		if was.Intent.Before == "" || w.podOf(cur.Name) == beforeOf(was.Intent.Before).Instance {
			w.fail("7: Recovered, and the pod of %s is the old one", cur.Name)
		}
	case e.Steps[len(e.Steps)-1].Name == polish.Name: // the proof of this step belongs to the foreign remediation
	case was.Intent == nil || was.Intent.BootID == cur.Status.NodeInfo.BootID:
		w.fail("7: Recovered, and the boot ID of %s is the old one", cur.Name)
	}
	p := i.config.PolicyOf(e.Policy, cur)
	if p == nil {
		w.fail("7: %s of %s by policy %s, which is no longer configured", e.Outcome, cur.Name, e.Policy)
		return
	}
	// A machine that broke again after the last look was healthy until then.
	if m.broken == 0 && time.Since(well)+truncated < p.ProofFor {
		w.fail("7: %s of %s after %s, proofFor is %s", e.Outcome, cur.Name, time.Since(well), p.ProofFor)
	}
	if w.sourceDead && time.Since(w.sourceDied) > sendEvery+lookedFor+10*time.Second {
		w.fail("7: %s of %s, and the source that would say otherwise died at %s", e.Outcome, cur.Name, w.sourceDied)
	}
	if !w.seenGone(i, was.Cause.Alert) {
		w.fail("7: %s of %s, and nobody said that its alert is gone", e.Outcome, cur.Name)
	}
}

// seenGone reports whether a recent answer to the instance shows that the alert is gone.
func (w *world) seenGone(i *instance, alert string) bool {
	for _, l := range w.looks {
		if l.by != i || time.Since(l.at) > 30*time.Second {
			continue
		}
		alive, has := false, false
		for _, r := range l.replicas {
			_, h := r.Alerts[alert]
			alive, has = alive || (r.Err == nil && r.Watchdog), has || h
		}
		if alive && !has {
			return true
		}
	}
	return false
}

// orphan returns the repair with that ID, if it outlives its Node.
func (w *world) orphan(id string) *ledger.Orphan {
	all := w.lostOrphans
	if l := w.book(); l != nil {
		all = append(slices.Clone(l.Orphans), all...)
	}
	if i := slices.IndexFunc(all, func(o ledger.Orphan) bool { return o.Record.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// checkSuccessor checks invariant 7 of a replacement: the old machine is off, and the Node belongs
// to another machine, which replaced it.
func (w *world) checkSuccessor(cur *corev1.Node, o *ledger.Orphan) {
	switch {
	case string(cur.UID) == o.UID || cur.Spec.ProviderID == o.ProviderID:
		w.fail("7: Recovered on %s, which is the same machine", cur.Name)
	case !w.off(o.ProviderID):
		w.fail("7: Recovered on %s, and the machine that it replaces is there", cur.Name)
	case w.born[cur.Spec.ProviderID].Before(o.Record.Intent.At):
		w.fail("7: Recovered on %s, which did not come for the machine of %s", cur.Name, o.Node)
	}
}
