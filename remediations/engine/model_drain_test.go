package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// overdue is how long a drain waits for a pod on a dead machine.
const overdue = time.Minute

// podsOf are the pods of one machine that a drain evicts. blocked means that a budget allows no
// eviction. forever means that evicted pods do not end although the machine is up. refused means
// that one pod must not be evicted, and that retrying does not change that.
type podsOf struct {
	left                      int
	blocked, forever, refused bool
}

// drainer evicts a node's pods, one a second, while the budget allows it.
type drainer struct{ *instance }

// Work is the drain. Evicted pods stay evicted, whichever process continues.
func (d drainer) Work(ctx context.Context, m Machine, mayStill func() error, tell func(note, blocked string)) error {
	d.enter("drain", false)
	d.w.do(func() {
		if d.w.beforeDrain != nil {
			d.w.beforeDrain()
			d.w.beforeDrain = nil
		}
	})
	if err := mayStill(); err != nil {
		return err
	}
	if at(d.w, func() bool { return d.w.lies.deafDrains }) {
		ctx = context.WithoutCancel(ctx)
	}
	var evicted time.Time
	for told := ""; ; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("draining %s: %w", m.Node, context.Cause(ctx))
		case <-time.After(time.Second):
		}
		p, err := d.pods(m)
		switch {
		case err != nil:
			return err
		case p.refused && m.WithoutController != remediations.WithoutControllerEvict:
			return errors.New("default/alone has no controller")
		case p.left == 0 && !p.forever && time.Since(evicted) > at(d.w, func() time.Duration { return d.w.ending(m) }):
			return nil
		case p.left > 0 && !p.blocked:
			d.evict(ctx, m)
			evicted = time.Now()
		}
		blocked := ""
		if p.blocked {
			blocked = "the budget default/web lets none of its pods go"
		}
		if blocked != told {
			told = blocked
			tell(fmt.Sprintf("%d pods left", p.left), blocked)
		}
	}
}

// pods reads the node as it is. It does not drain another node with the same name, or a node that
// is not cordoned.
func (d drainer) pods(m Machine) (podsOf, error) {
	d.enter("pods", false)
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	switch n := d.w.nodes[m.Node]; {
	case n == nil:
		return podsOf{}, ErrNotFound
	case d.w.lies.blindDrains:
	case string(n.UID) != m.UID:
		return podsOf{}, ErrNotFound
	case !n.Spec.Unschedulable:
		return podsOf{}, errors.New("the node is not cordoned")
	}
	return d.w.machines[m.Node].pods, nil
}

func (d drainer) evict(ctx context.Context, m Machine) {
	d.awake()
	fatal := d.enter("evict "+m.Node, true)
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.w.nodes[m.Node] == nil || ctx.Err() != nil {
		return // the client sends nothing any more
	}
	d.w.checkEviction(d.instance, m)
	d.w.machines[m.Node].pods.left--
	d.w.evictions = append(d.w.evictions, providerCall{node: m.Node, step: "drain", at: time.Now()})
	d.leave(fatal)
}

// awake waits until the process is awake. If a process is suspended, all its goroutines are.
func (i *instance) awake() {
	time.Sleep(time.Until(at(i.w, func() time.Time { return i.asleepUntil })))
}

// ending is how long the machine's evicted pods take to end.
func (w *world) ending(m Machine) time.Duration {
	if x := w.machines[m.Node]; x != nil && x.well() {
		return 0
	}
	return overdue
}

// noticed is how long an engine may take to notice what must end a drain: its data is a few seconds
// old, and the drain checks once a second.
const noticed = behind + time.Second

// checkEviction checks every eviction of a pod by invariants 1, 4, 5, 6, 8 and 9, and that the
// breaker is closed.
func (w *world) checkEviction(i *instance, m Machine) {
	w.checkName(m.Node)
	now, n := time.Now(), w.nodes[m.Node]
	awake := i.asleepUntil
	long := func(since time.Time) bool {
		if since.Before(awake) {
			since = awake
		}
		return now.Sub(since) > noticed
	}
	r, since := w.draining(m)
	switch {
	case long(since):
		w.fail("4: an eviction on %s, where no drain is on record since %s", m.Node, since)
	case !i.cancelled.IsZero() && now.Sub(i.cancelled) > time.Second:
		w.fail("4: an eviction on %s by a process that lost its lead at %s", m.Node, i.cancelled)
	case r == nil: // the repair ended a moment ago
	case !i.enforces(r.Policy):
		w.fail("1: an eviction on %s in observe mode", m.Node)
	case !n.Spec.Unschedulable && long(w.uncordoned[m.Node]):
		w.fail("8: an eviction on %s, which was uncordoned at %s", m.Node, w.uncordoned[m.Node])
	case len(r.Undo) == 0 && !i.config.PolicyOf(r.Policy, n).RepairCordoned:
		w.fail("8: an eviction on %s, and no cordon is on record", m.Node)
	}
	if r == nil {
		return
	}
	if since, held := w.paused[m.Node]; held && long(since) {
		w.fail("9: an eviction on %s, held since %s", m.Node, since)
	}
	if since, cancelled := w.cancelled[r.ID]; cancelled && long(since) {
		w.fail("9: an eviction for %s, cancelled at %s", r.ID, since)
	}
	for _, scope := range []string{ledger.ScopeCluster, "zone/" + n.Labels["zone"]} {
		if since, over := w.overSince[scope]; over && long(since) {
			w.fail("FleetUnhealthy: an eviction on %s, and %s is in a storm since %s", m.Node, scope, since)
		}
	}
	if now.Sub(awake) > noticed {
		w.checkDrainWord(i, m, r, now)
		w.checkData(i, m.Node, now, drainLooked)
	}
}

// drainLooked is how old a drain's data may be: MaxStaleness, and a pass.
const drainLooked = 32 * time.Second

// checkDrainWord checks invariant 5 of an eviction. An Alertmanager confirmed its cause in the last
// thirty seconds, and the latest answer does not stop the drain.
func (w *world) checkDrainWord(i *instance, m Machine, r *remediations.Record, now time.Time) {
	confirmed := func(at time.Time) bool {
		if r.Cause.Request != "" {
			return w.unsilenced(i, m.Node, at)
		}
		return w.confirmed(i, r.Cause.Alert, at)
	}
	if !confirmed(now.Add(-2 * time.Second)) {
		w.fail("5: an eviction on %s, and no Alertmanager had confirmed its cause in the last 30 s", m.Node)
	}
	all := w.looks
	defer func() { w.looks = all }()
	for k := len(all) - 1; k >= 0; k-- {
		if l := all[k]; l.by == i && now.Sub(l.received) > 2*time.Second {
			if w.looks = all[k:]; now.Sub(l.at) < 30*time.Second && !confirmed(now) {
				w.fail("5: an eviction on %s, and it was said at %s that nothing is to be done", m.Node, l.received)
			}
			return
		}
	}
}

// draining returns the record whose drain runs on the machine's Node now. If none does, it returns
// since when that is so.
func (w *world) draining(m Machine) (r *remediations.Record, since time.Time) {
	by := func(n *corev1.Node) *remediations.Record {
		if n == nil || string(n.UID) != m.UID {
			return nil
		}
		if r := modelRegistry.ReadJournal(n).Record; r != nil && r.Phase == remediations.PhaseActing && r.Step.Name == "drain" {
			return r
		}
		return nil
	}
	if r := by(w.nodes[m.Node]); r != nil {
		return r, time.Now()
	}
	for k := len(w.events) - 1; k >= 0; k-- {
		if e := w.events[k]; e.name == m.Node {
			if by(e.node) != nil {
				return nil, since
			}
			since = e.at
		}
	}
	return nil, time.Time{}
}
