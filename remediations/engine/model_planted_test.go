package engine

import (
	"strconv"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// plants: while nobody leads, somebody who may patch Nodes writes the record of a sidecar's repair, as if Drydock had. It
// keeps no place for longer than its step may take, and ends.
func (l *life) plants(t *rapid.T) {
	l.w.do(l.w.last().cancel)
	l.w.pass(6 * time.Second)
	l.w.do(func() {
		g := l.anyPod(t)
		if g == nil || l.w.nodes[g.node] == nil || l.w.nodes[g.node].Annotations[podKey(g.name)] != "" {
			return
		}
		// One with a deadline within a day goes on for so long: a clock may have been wrong by as much.
		issued := time.Now().UTC().Truncate(time.Second).Add(-rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "issued before"))
		deadline := issued.Add(5 * time.Minute)
		if rapid.Bool().Draw(t, "without end") {
			deadline = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
			if rapid.Bool().Draw(t, "from the future") {
				issued = deadline
			}
		}
		l.w.ids++
		id := "p" + strconv.FormatInt(36*36*36*36+int64(l.w.ids), 36)
		r := plantedSidecar(g.name, issued, deadline)
		r.Phase = rapid.SampledFrom([]remediations.Phase{remediations.Acting, remediations.Verifying, remediations.Pending}).Draw(t, "phase")
		r.ID, r.Pod.UID, r.Intent.ID, r.Intent.Task = id, g.uid, id+"-0-1", "task-"+id
		l.w.gates.tasks[r.Intent.Task] = r.Intent.ID
		l.w.edit(g.node, edit(podKey(g.name), r.Encode()))
	})
	l.w.startWith(l.w.last().config, 0)
}
