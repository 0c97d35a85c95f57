package engine

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/signs"
)

// lookAnswer is an answer that an instance received, and when it asked.
type lookAnswer struct {
	by       *instance
	at       time.Time
	received time.Time // when the answer arrives
	replicas []alerts.Replica
}

// instance is one engine in the world, as a process. All its ports are methods of it. So a dead
// process can do nothing more, whatever its goroutines were doing.
type instance struct {
	w      *world
	engine *Engine
	cancel context.CancelFunc
	dead   bool

	config *remediations.Config
	// offset is how wrong its clock is.
	offset time.Duration
	// slept is how long its machine was suspended. If it is negative, the process's clock has no
	// monotonic reading. asleepInLook means that the machine is suspended during a query of
	// Alertmanager.
	slept        atomic.Int64
	asleepInLook bool

	// seen is how many of the world's events its cache has received. view is the cache.
	seen int
	view map[string]*corev1.Node

	// unsure means that its cache was wrong before, and cannot report what changed since.
	unsure bool
	// still means that its watch is open and delivers nothing.
	still bool

	// changes counts its port calls that change something. crashAt is the call at which it dies,
	// before or after the change.
	changes, crashAt int
	crashAfter       bool
	log              []string
	// asked counts its port calls, by the first word of their names.
	asked map[string]int
	// passes counts reads of the cache within one second: an engine that spins would never let time
	// pass.
	passes int
	second int64
	// stall delays the next port call whose name begins with stallAt, as if the process were
	// suspended.
	stall   time.Duration
	stallAt string
	// asleepUntil is when such a stall ends. cancelled is when the process lost the leadership.
	asleepUntil, cancelled time.Time
}

// cacheLag is the longest lag of a cache.
const cacheLag = 3 * time.Second

// callTimeout bounds a call to the model's provider.
const callTimeout = 45 * time.Second

// wrongClock is a process's own clock.
type wrongClock struct {
	clock.RealClock
	by time.Duration
	// slept is how long its machine was suspended while its monotonic clock stood still. If it is
	// negative, there is no monotonic clock.
	slept *atomic.Int64
}

// monotonic adds a monotonic reading to a time. The times in a synctest bubble have none.
var monotonic = time.Now()

func (c wrongClock) Now() time.Time {
	now, slept := time.Now().Add(c.by), c.slept.Load()
	if slept < 0 {
		return now
	}
	return awakeFor(monotonic.Add(now.Sub(monotonic.Round(0))), -time.Duration(slept))
}
func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// start runs an engine on the world. startWith runs one with another configuration or a wrong
// clock.
func (w *world) start() *instance { return w.startWith(w.config, 0) }

func (w *world) startWith(c *remediations.Config, offset time.Duration) *instance {
	i := &instance{w: w, view: map[string]*corev1.Node{}, asked: map[string]int{}, config: c, offset: offset}
	i.slept.Store(-1)
	actuators := map[string]Actuator{"reboot": provider{i, "reboot"}, "restart-kubelet": provider{i, "restart-kubelet"}, "replace": replacer{provider{i, "replace"}}, "powerOff": powerPort{provider{i, "powerOff"}}}
	if w.outlets {
		actuators["reboot"] = outletPort{provider{i, "reboot"}}
	}
	for _, step := range askingSteps {
		actuators[step] = podProvider{provider{i, step}}
	}
	maps.Copy(actuators, w.actuators)
	byProvider := map[string]map[string]Actuator{"": actuators}
	for _, p := range c.Providers {
		byProvider[p.Name] = map[string]Actuator{}
		for _, step := range p.Steps {
			byProvider[p.Name][step] = servant{replacer{provider{i, step}}, p.Name}
		}
	}
	workers := map[string]Worker{"drain": drainer{i}}
	var sidecars Sidecars
	if w.gates != nil && len(c.SidecarProviders) > 0 {
		sidecars = sidecarPort{i}
	}
	var leaders Locations
	if w.mesh != nil && c.Provided["promote-leader"] {
		leaders = leaderPort{i}
	}
	var conditions Conditions
	if c.Conditions {
		conditions = i
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.engine = New(Options{
		Adopt: func(n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result) {
			return i.adopt(ctx, n, a)
		},
		Conditions: conditions, Locations: leaders, Sidecars: sidecars, NewTask: w.newTask, Silencer: w.silencer, Reservers: w.reservers, Repairers: w.repairers, Config: c, Fleet: i, Writer: i, Store: ledgerPort{i}, Alerts: i, Actuators: byProvider, Witnesses: w.witnesses, Workers: workers, Events: i,
		Metrics: prometheus.NewRegistry(), Clock: wrongClock{by: offset, slept: &i.slept}, Log: w.log, PollInterval: w.pollEvery,
		Charge: func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.charge
		},
		Writes: func() Writes {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.writes == nil {
				return Writes{}
			}
			return w.writes()
		},
		CallTimeout: callTimeout, NewID: w.newID, Below: w.below,
	})
	i.engine.core = w.core
	i.cancel = func() {
		if i.cancelled.IsZero() {
			i.cancelled = time.Now()
		}
		cancel()
	}
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
	if c.Conditions {
		go i.keepShowing(ctx)
	}
	return i
}

// below returns random numbers from the model's seed, which are the same in each run.
func (w *world) below(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return "r" + strconv.FormatInt(36*36*36*36+int64(w.ids), 36) // six letters, however long the history is
}

func (w *world) newTask() string { return "task-" + w.newID() }

// enter begins a port call. A dead process ends here, and so does a process that must die before
// the call. enter returns whether the process dies after the call.
func (i *instance) enter(op string, changing bool) (fatal bool) {
	i.w.mu.Lock()
	var stall time.Duration
	if strings.HasPrefix(op, i.stallAt) {
		stall, i.stall = i.stall, 0
		if stall > 0 {
			i.asleepUntil = time.Now().Add(stall)
		}
	}
	if changing {
		stall += i.w.roundTrip
	}
	i.w.mu.Unlock()
	if stall > 0 {
		time.Sleep(stall)
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	what, _, _ := strings.Cut(op, " ")
	i.asked[what]++
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

// leave ends a port call that took effect. The process may die before it receives the result.
func (i *instance) leave(fatal bool) {
	if fatal {
		i.dead = true
	}
	if i.dead {
		runtime.Goexit()
	}
}

func (i *instance) fault(op string) string {
	if f := i.w.always[op]; f != "" {
		return f
	}
	f := i.w.faults[op]
	if len(f) == 0 {
		return ""
	}
	i.w.faults[op] = f[1:]
	return f[0]
}

var errLost = errors.New("the server did not answer in time")

// Nodes returns the cache. The cache is some events behind, but never more than a few seconds, and
// it never goes back.
func (i *instance) Nodes(context.Context) ([]*corev1.Node, error) {
	i.enter("nodes", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.spins()
	switch i.fault("nodes") {
	case "":
	case "empty":
		i.unsure = true
		return nil, nil
	default:
		return nil, errLost
	}
	i.catchUp()
	nodes := make([]*corev1.Node, 0, len(i.view))
	if i.w.lies.ghosts {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ghost"}})
	}
	for _, n := range i.view {
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// Changed returns what entered the cache since the last call. It cannot answer while something is
// wrong with the cache.
func (i *instance) Changed(context.Context) (nodes []*corev1.Node, gone []string, ok bool) {
	i.enter("changed nodes", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if i.unsure || i.w.lies.ghosts || len(i.w.faults["nodes"]) > 0 || i.w.always["nodes"] != "" {
		i.unsure = false
		return nil, nil, false
	}
	i.spins()
	for name := range i.catchUp() {
		if n := i.view[name]; n != nil {
			nodes = append(nodes, n)
		} else {
			gone = append(gone, name)
		}
	}
	return nodes, gone, true
}

// spins fails a world whose engine reads its cache without end.
func (i *instance) spins() {
	if now := time.Now().Unix(); now != i.second {
		i.second, i.passes = now, 0
	}
	if i.passes++; i.passes > 300 {
		i.w.fail("the engine spins")
		runtime.Goexit()
	}
}

// catchUp updates the cache to the current time, and returns which Nodes changed.
func (i *instance) catchUp() map[string]bool {
	changed := map[string]bool{}
	if i.still {
		return changed
	}
	for ; i.seen < len(i.w.events); i.seen++ {
		e := i.w.events[i.seen]
		if i.seen >= len(i.w.events)-i.w.lag && time.Since(e.at) < cacheLag {
			break
		}
		changed[e.name] = true
		if e.node == nil {
			delete(i.view, e.name)
		} else {
			i.view[e.name] = e.node
		}
	}
	return changed
}

func (i *instance) Node(_ context.Context, name string) (*corev1.Node, error) {
	i.enter("node", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.checkName(name)
	if i.w.lastLook != nil {
		i.w.lastLook()
	}
	if i.fault("node") != "" || name == i.w.unreadable {
		return nil, errLost
	}
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
	if i.fault("lease") != "" {
		return time.Time{}, 0, errLost
	}
	return i.w.renewed(m), leaseFor, nil
}

// Leases reads a sample. The answer has only the requested leases.
func (i *instance) Leases(_ context.Context, nodes []string) (map[string]signs.Lease, error) {
	i.enter("leases", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	out := map[string]signs.Lease{}
	switch i.fault("leases") {
	case "":
	case "empty":
		return out, nil
	default:
		return nil, errLost
	}
	for _, name := range nodes {
		if m := i.w.machines[name]; m != nil {
			l := signs.Lease{ReadAt: time.Now().Add(i.offset), RenewedAt: i.w.renewed(m), Duration: leaseFor}
			if i.w.lies.freshSample {
				l.RenewedAt = l.ReadAt
			}
			out[name] = l
		}
	}
	return out, nil
}

func (i *instance) Heartbeats(context.Context) (map[string]signs.Lease, error) {
	i.enter("heartbeats", false)
	time.Sleep(at(i.w, func() time.Duration { return i.w.leasesTake }))
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	out := map[string]signs.Lease{}
	switch i.fault("heartbeats") {
	case "":
	case "empty":
		return out, nil
	default:
		return nil, errLost
	}
	for name, m := range i.w.machines {
		out[name] = signs.Lease{ReadAt: time.Now().Add(i.offset), RenewedAt: i.w.renewed(m), Duration: leaseFor}
	}
	return out, nil
}

// Look answers after a while with the state from when it began. A real network can do no worse.
func (i *instance) Look(context.Context) []alerts.Replica {
	i.enter("look", false)
	i.w.mu.Lock()
	at, takes := time.Now(), i.w.lookTakes
	words := []alerts.Replica{i.w.answer(0), i.w.answer(1)}
	i.w.looks = append(i.w.looks, lookAnswer{by: i, at: at, received: at.Add(takes), replicas: words})
	if len(i.w.looks) > 40 {
		i.w.looks = i.w.looks[1:]
	}
	i.w.mu.Unlock()
	time.Sleep(takes)
	if i.asleepInLook {
		i.slept.Add(int64(takes))
	}
	return words
}

func (i *instance) Event(regarding string, e Event) {
	i.enter("event", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.told = append(i.w.told, e)
	if e.Reason == "RepairHeld" && e.About == nil {
		i.w.toldOn = append(i.w.toldOn, heldOn{regarding, e.Note, time.Now()})
	}
	if e.Reason == "RepairRecovered" && regarding == "" && e.About == nil && e.Of.Pod == "" && e.Of.Location == "" && e.Of.Target == "" {
		i.w.checkNoneNeeded(i, e)
		i.w.settled(e.Action)
	}
	if e.Reason == "RepairExhausted" {
		i.w.settled(e.Action)
	}
}
