package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
)

// lookAnswer is what an instance was told, and when it asked.
type lookAnswer struct {
	by       *instance
	at       time.Time
	replicas []remediations.ReplicaWord
}

// instance is one engine on the world: a process. All its ports are methods of it, so that a process that is dead can
// do nothing more, whatever its goroutines were doing.
type instance struct {
	w      *world
	engine *Engine
	cancel context.CancelFunc
	dead   bool

	// seen is how far its cache has come in the world's events; view is the cache.
	seen int
	view map[string]*corev1.Node

	// changes counts its port calls that change something; crashAt is the one at which it dies, before it or after.
	changes, crashAt int
	crashAfter       bool
	log              []string
	// passes counts looks into the cache within one second: an engine that spins would never let time go by.
	passes int
	second int64
	// stall makes its next port call take that long: a process that was suspended.
	stall time.Duration
}

// start runs an engine on the world.
func (w *world) start() *instance {
	i := &instance{w: w, view: map[string]*corev1.Node{}}
	actuators := map[string]Actuator{"reboot": rebooter{i}}
	i.engine = New(Options{
		Config: w.config, Fleet: i, Journal: i, Store: ledgerPort{i}, Alerts: i, Actuators: actuators, Events: i,
		Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Log: logr.Discard(), PollInterval: 15 * time.Second,
		CallTimeout: 45 * time.Second, NewID: w.newID,
	})
	ctx, cancel := context.WithCancel(context.Background())
	i.cancel = cancel
	w.instances = append(w.instances, i)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.fail("panic: %v\n%s", r, debug.Stack())
			}
		}()
		_ = i.engine.Start(ctx)
	}()
	return i
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("r%04d", w.ids)
}

// enter begins a port call. A dead process ends here; so does one that is to die before the call. It says whether the
// process is to die after it.
func (i *instance) enter(op string, changing bool) (fatal bool) {
	i.w.mu.Lock()
	stall := i.stall
	i.stall = 0
	i.w.mu.Unlock()
	if changing {
		stall += 10 * time.Millisecond // what a round trip takes at least
	}
	if stall > 0 {
		time.Sleep(stall)
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if changing && !i.dead {
		i.changes++
		i.log = append(i.log, op)
		fatal = i.changes == i.crashAt
	}
	if fatal && !i.crashAfter {
		i.dead = true
	}
	if i.dead {
		runtime.Goexit()
	}
	return fatal
}

// leave ends a port call that took effect; the process may die without having heard of it.
func (i *instance) leave(fatal bool) {
	if fatal {
		i.dead = true
	}
	if i.dead {
		runtime.Goexit()
	}
}

// crash kills the process where it stands.
func (i *instance) crash() { i.dead = true }

func (i *instance) fault(op string) string {
	f := i.w.faults[op]
	if len(f) == 0 {
		return ""
	}
	i.w.faults[op] = f[1:]
	return f[0]
}

var errLost = errors.New("the server did not answer in time")

// Nodes gives the cache: behind by so many events, but never by more than a few seconds, and never going back.
func (i *instance) Nodes(context.Context) ([]*corev1.Node, error) {
	i.enter("nodes", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if now := time.Now().Unix(); now != i.second {
		i.second, i.passes = now, 0
	}
	if i.passes++; i.passes > 300 {
		i.w.fail("the engine spins")
		i.dead = true
		runtime.Goexit()
	}
	if i.fault("nodes") != "" {
		return nil, errLost
	}
	for ; i.seen < len(i.w.events); i.seen++ {
		e := i.w.events[i.seen]
		if i.seen >= len(i.w.events)-i.w.lag && time.Since(e.at) < 3*time.Second {
			break
		}
		if e.node == nil {
			delete(i.view, e.name)
		} else {
			i.view[e.name] = e.node
		}
	}
	nodes := make([]*corev1.Node, 0, len(i.view))
	for _, n := range i.view {
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (i *instance) Node(_ context.Context, name string) (*corev1.Node, error) {
	i.enter("node", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.checkName(name)
	n := i.w.nodes[name]
	if n == nil {
		return nil, ErrNotFound
	}
	return n.DeepCopy(), nil
}

func (i *instance) Lease(_ context.Context, node string) (time.Time, time.Duration, error) {
	i.enter("lease", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.checkName(node)
	m := i.w.machines[node]
	if m == nil {
		return time.Time{}, 0, ErrNotFound
	}
	return m.renewed(), leaseFor, nil
}

func (i *instance) Heartbeats(context.Context) (map[string]remediations.Lease, error) {
	i.enter("heartbeats", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	out := map[string]remediations.Lease{}
	for name, m := range i.w.machines {
		out[name] = remediations.Lease{ReadAt: time.Now(), RenewedAt: m.renewed(), Duration: leaseFor}
	}
	return out, nil
}

func (m *machine) renewed() time.Time {
	if m.well() && !m.leaseFrozen {
		return time.Now()
	}
	return time.Now().Add(-time.Hour)
}

func (i *instance) Write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error) {
	fatal := i.enter("write "+describe(n, c), true)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.checkName(n.Name)
	fault := i.fault("write")
	cur := i.w.nodes[n.Name]
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case fault == "lost":
		return nil, errLost
	case cur == nil:
		return nil, ErrNotFound
	case fault == "conflict" || cur.UID != n.UID || cur.ResourceVersion != n.ResourceVersion:
		return nil, ErrConflict
	}
	i.w.checkWrite(i, cur, c)
	i.w.edit(n.Name, func(n *corev1.Node) {
		apply(n.Annotations, c.Annotations)
		apply(n.Labels, c.Labels)
		if c.Unschedulable != nil {
			n.Spec.Unschedulable = *c.Unschedulable
			i.w.machines[n.Name].cordonedBy = map[bool]string{true: "drydock"}[*c.Unschedulable]
		}
	})
	i.w.checkState()
	i.leave(fatal)
	if fault == "written" {
		return nil, errLost
	}
	return i.w.nodes[n.Name].DeepCopy(), nil
}

func apply(to map[string]string, change map[string]*string) {
	for k, v := range change {
		if v == nil {
			delete(to, k)
		} else {
			to[k] = *v
		}
	}
}

// describe names a write in the list of port calls.
func describe(n *corev1.Node, c NodeChange) string {
	phase := "other"
	if v, ok := c.Labels[remediations.PhaseLabel]; ok {
		phase = "end"
		if v != nil {
			phase = *v
		}
	}
	return n.Name + " " + phase
}

func (i *instance) OwnsCordon(_ context.Context, node string) (bool, error) {
	i.enter("ownsCordon", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	m := i.w.machines[node]
	if m == nil {
		return false, ErrNotFound
	}
	return m.cordonedBy == "drydock", nil
}

// Look answers after a while with what was so at its beginning: the worst that the network can do.
func (i *instance) Look(context.Context) []remediations.ReplicaWord {
	i.enter("look", false)
	i.w.mu.Lock()
	at, takes := time.Now(), i.w.lookTakes
	words := []remediations.ReplicaWord{i.w.answer(0), i.w.answer(1)}
	i.w.looks = append(i.w.looks, lookAnswer{by: i, at: at, replicas: words})
	if len(i.w.looks) > 40 {
		i.w.looks = i.w.looks[1:]
	}
	i.w.mu.Unlock()
	time.Sleep(takes)
	return words
}

func (i *instance) Event(_ string, e Event) {
	i.enter("event", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.told = append(i.w.told, e)
}
