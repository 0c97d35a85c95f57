package engine

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// plants is an attack. While there is no leader, a client that may patch Nodes writes a record as
// if it were Drydock's. The record must keep no place for longer than its step may take, and must
// end.
func (l *life) plants(record func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		l.w.do(l.w.last().cancel)
		l.w.pass(6 * time.Second)
		l.w.do(func() { record(t) })
		l.w.startWith(l.w.last().config, 0)
	}
}

// plantedTimes are when a planted record claims that its step was issued, and the step's deadline.
// A record with a deadline within a day continues until then, because a clock may have been wrong
// by as much.
func plantedTimes(t *rapid.T) (issued, deadline time.Time) {
	issued = time.Now().UTC().Truncate(time.Second).Add(-rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "issued before"))
	deadline = issued.Add(5 * time.Minute)
	if rapid.Bool().Draw(t, "without end") {
		deadline = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		if rapid.Bool().Draw(t, "from the future") {
			issued = deadline
		}
	}
	return issued, deadline
}

var plantedPhases = []remediations.Phase{remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhasePending}

func (w *world) plantedID() string {
	w.ids++
	return "p" + strconv.FormatInt(36*36*36*36+int64(w.ids), 36)
}

// isPlanted distinguishes planted IDs from Drydock's own, which begin with r.
func isPlanted(id string) bool { return strings.HasPrefix(id, "p") }

func (l *life) plantsSidecar(t *rapid.T) {
	g := l.anyPod(t)
	if g == nil || l.w.nodes[g.node] == nil || l.w.nodes[g.node].Annotations[podKey(g.name)] != "" {
		return
	}
	issued, deadline := plantedTimes(t)
	r, id := plantedSidecar(g.name, issued, deadline), l.w.plantedID()
	r.Phase = rapid.SampledFrom(plantedPhases).Draw(t, "phase")
	r.ID, r.Pod.UID, r.Intent.ID, r.Intent.Task = id, g.uid, id+"-0-1", "task-"+id
	l.w.gates.tasks[r.Intent.Task] = r.Intent.ID
	l.w.edit(g.node, edit(podKey(g.name), r.Encode()))
}

func (l *life) plantsNode(t *rapid.T) {
	name := pick(t)
	n := l.w.nodes[name]
	if n == nil || n.Annotations[remediations.NodeRepairKey] != "" || n.Labels[remediations.PhaseLabel] != "" {
		return
	}
	issued, deadline := plantedTimes(t)
	p, id := l.w.config.Policies[0], l.w.plantedID()
	step := rapid.IntRange(0, len(p.Plan)-1).Draw(t, "step")
	r := &remediations.Record{
		V: 1, ID: id, Policy: p.Name, Cause: remediations.Cause{Alert: fingerprintOf(name)}, Phase: rapid.SampledFrom(plantedPhases).Draw(t, "phase"),
		Step: remediations.StepRef{Index: step, Name: p.Plan[step].Name, Attempt: 1}, Done: remediations.Attempts{{Name: p.Plan[step].Name, Number: 1}},
		Began: issued, Since: issued, Deadline: deadline,
		Intent: &remediations.Intent{ID: id + "-" + strconv.Itoa(step) + "-1", At: issued, UID: string(n.UID), ProviderID: n.Spec.ProviderID, BootID: n.Status.NodeInfo.BootID, Outcome: remediations.CallAccepted},
	}
	l.w.of[id] = n.Spec.ProviderID
	l.w.edit(name, func(n *corev1.Node) {
		n.Annotations[remediations.NodeRepairKey] = r.Encode()
		n.Labels[remediations.PhaseLabel] = string(r.Phase)
	})
}

func (l *life) plantsMove(t *rapid.T) {
	name := pick(t)
	n := l.w.nodes[name]
	if l.w.mesh == nil || n == nil || n.Annotations[remediations.LocationKey] != "" || n.Labels[remediations.PhaseLabel] != "" {
		return
	}
	r := planted(l.w.plantedID(), rapid.SampledFrom(plantedPhases).Draw(t, "phase"))
	r.Since, r.Deadline = plantedTimes(t)
	r.Began, r.Intent.At = r.Since, r.Since
	if rapid.Bool().Draw(t, "nothing is to be put back") {
		r.Back = nil
	}
	l.w.edit(name, func(n *corev1.Node) {
		n.Annotations[remediations.LocationKey] = r.Encode()
		n.Labels[remediations.PhaseLabel] = string(r.Phase)
	})
}
