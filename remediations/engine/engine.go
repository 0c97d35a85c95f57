// Package engine runs the loop: gather what is known, decide, record the intent, act, verify. It runs on the leader
// alone, in one goroutine that owns all of its state; only calls to providers and looks at Alertmanager run beside it.
package engine

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// Options are all that the engine needs; none but the Silencer, the Witnesses and Posts may be left out.
type Options struct {
	Config  *remediations.Config
	Fleet   Fleet
	Journal Journal
	Store   LedgerStore
	Alerts  AlertSource
	// Actuators are the remediations that each provider carries out, by the provider's name and the remediation's. Config.Providers
	// says who serves which Node.
	Actuators map[string]map[string]Actuator
	Workers   map[string]Worker
	// Witnesses answer for the signs of their kind; one that is missing says that nothing is known.
	Witnesses map[signs.Kind]Witness
	// Sidecars is nil where no provider of sidecars is configured.
	Sidecars Sidecars
	// Locations is nil where no mesh is configured whose leaders could be moved.
	Locations Locations
	// Reservers are those who share with Drydock which of them repairs a node: Config.Reserves.
	Reservers []Reserver
	// Conditions show what Drydock does in the Nodes' conditions; nil: nobody does.
	Conditions Conditions
	// Repairers are the other systems that were found to repair nodes by themselves. Nil: only those that the Nodes show are known.
	Repairers func() []coverage.Repairer
	// Silencer is nil where Drydock makes no silences.
	Silencer Silencer
	Events   Recorder
	Metrics  prometheus.Registerer
	Clock    clock.WithTicker
	Log      logr.Logger
	// PollInterval is the time between two looks at Alertmanager that nobody asked for.
	PollInterval time.Duration
	// CallTimeout bounds one call to a provider, by far.
	CallTimeout time.Duration
	// NewID gives a fresh repair id, NewTask a fresh UUID for a sidecar's task.
	NewID, NewTask func() string
	// Queued says that the receiver of this replica has a write of the alert under that key still to make; nil: it has none.
	Queued func(n *corev1.Node, key string) bool
	// Adopt takes an alert that only a poll saw for its Node, as the receiver takes those of a post; false: there is no room for it
	// now, and a later poll tries again. It must not block.
	Adopt func(n *corev1.Node, a remediations.Alert) bool
	// Charge says why this installation is not in charge of the cluster, so that it changes nothing; empty: it is. Nil: there is no other.
	Charge func() string
	// Admission is what came to the webhook of this replica. Nil, or a nil answer: it has none.
	Admission func() *ledger.Admission
	// Writes says how the API server takes Drydock's writes on Nodes; nil: nobody watches that.
	Writes func() Writes
	// Posts is what the receiver of this replica knows of the self-test; nil: nothing.
	Posts func() selftest.Posts
	// Below gives a random number from 0 on, below its argument, by which a large fleet's leases are sampled. Nil: all are
	// listed, however many there are.
	Below func(n int) int
	// Beside runs what goes on beside the loop: calls to providers, and looks at Alertmanager. Nil: each in a goroutine.
	Beside func(func())
	// Decided is told each decision about a node, before it is carried out. Nil: nobody is told.
	Decided func(node string, d lifecycle.Decision)
}

// Engine is the loop. It is a manager.Runnable that needs leadership.
type Engine struct {
	Options
	core    core
	metrics *metrics
	notice  chan struct{}
	news    chan struct{}
	// expected: an alert is about to be written on a Node.
	expected chan struct{}

	looked chan looked
	calls  chan called
	// enqueued bring what was found out beside the loop back into it.
	enqueued chan func()
	over     chan struct{}
	// looking says that a look is under way, lookAgain that one more was asked for after it began.
	looking, lookAgain bool
	// lookDue says that a look was asked for before lookFrom, until which none begins.
	lookDue  bool
	lookFrom time.Time
	// underway are the calls to providers, surveys the questions about machines that are not answered yet, testimonies the
	// nodes whose signs are being read.
	underway, surveys, testimonies int

	word        *alerts.Snapshot
	sawWatchdog time.Time
	firing      map[string]time.Time
	replicaDown map[string]bool
	heartbeats  *signs.Heartbeats
	leases      leaseReadings
	// led is since when this process leads, passed when its last pass ended.
	led, passed time.Time
	// listing has the leases that prefetchLeases asked for; nil: it asked for none.
	listing   chan listed
	ledger    *ledger.Ledger
	ledgerErr error
	ledgerAt  string
	// gpusSeen is the version of the Nodes' GPUs that the ledger was last compared with, because a GPU that falls off its bus leaves the
	// Node's label, too. cancelsOver are cancels that the ledger must forget.
	gpusSeen    int
	cancelsOver []cancelOver
	// knowsAll: the ledger has what a whole pass found on all Nodes, after Alertmanager was asked.
	knowsAll bool
	// ledgerOut is while the ledger can be neither read nor saved, leasesOut while the leases cannot be listed. conflicts
	// counts the saves in a row that met somebody else's.
	// leaseOut is while the lease of a single node cannot be read.
	ledgerOut, leasesOut, leaseOut outage
	conflicts                      int
	statusSaved                    ledger.Status
	// stored is the ledger's data as it was last read or saved. decoded is what it says, and is never changed; nil: it was not
	// decoded.
	stored     map[string]string
	decoded    *ledger.Ledger
	connection connection
	lastCount  lastCount
	contest    contest
	memory     map[string]*memory
	silent     silentProviders
	// orphans are the memories of repairs whose Node is gone, by repair.
	orphans    map[string]*memory
	runs       int
	fleetHolds map[remediations.Reason]toldHold
	// breakersTold are the breakers as people were last told of them; nil: before the first pass with a ledger.
	breakersTold map[string]ledger.Breaker
	long         longHolds
	again        bool
	// roster is what is known of the Nodes, once they were listed. wrote are the memories of those whose last write the cache may
	// not show yet, working names those on which a step is under way that takes its time.
	roster     *fleet.Roster
	listedOnce bool
	wrote      map[string]*memory
	working    map[string]bool
	// ledgerRead is when the ledger was last read or written; waiting says that in the last pass a guard held something, or
	// might yet hold what is under way; prefetchDue that prefetch has something to do.
	ledgerRead           time.Time
	waiting, prefetchDue bool
	// adoptions counts how often alerts were adopted.
	adoptions int
	// blindSince is since when this process has been blind; zero: it is not.
	blindSince time.Time
	// unrouted are the alerts of the word that are not routed to Drydock.
	unrouted elsewhere
	// strays are those that are routed to Drydock, and that no policy takes.
	strays strays
	// outside is what is held against the sources, attempts what no attempt is called twice by.
	outside
	attempts attempts
	// doubted are the machines, by provider, for which a call was refused for the account, and nothing has shown yet that it is.
	doubted map[string]target

	// targets are what is remembered of sidecars and locations, looks counts the looks at them that are under way. passes counts
	// the passes, concerned the nodes that the last one had to decide about, busySidecars the sidecars under repair.
	targets      map[target]*targetMemory
	gates        map[string]*sidecar.Observation // the last looks that showed whether a gate of a pod is open; they outlive its alert
	looks        map[remediations.Kind]int
	passes       int
	concerned    int
	busySidecars int
	// sidecarsCounted is when busySidecars were counted.
	sidecarsCounted time.Time
}

type called struct {
	of             target
	call           lifecycle.Call
	step, provider string
	trail          Trail
}

// New makes an engine.
func New(o Options) *Engine {
	core := wholeCore()
	if o.Beside == nil {
		o.Beside = func(f func()) { go f() }
	} else {
		core.lookLongest = 0 // a simulation: its sources answer at once, and its clock has no timers
	}
	o.Events = loggedEvents{o.Events, o.Log}
	return &Engine{
		Options: o, core: core, metrics: newMetrics(o.Metrics, o.Config), notice: make(chan struct{}, 1), news: make(chan struct{}, 1), expected: make(chan struct{}, 1),
		looked: make(chan looked, 1), calls: make(chan called, 16), enqueued: make(chan func(), 16), over: make(chan struct{}),
		outside: outside{shown: map[string]version{}, unknownSlots: map[string]bool{}}, attempts: attempts{}, doubted: map[string]target{},
		long: longHolds{held: map[target]*longHold{}}, roster: fleet.NewRoster(o.Config), wrote: map[string]*memory{}, working: map[string]bool{},
		memory: map[string]*memory{}, silent: silentProviders{}, orphans: map[string]*memory{}, targets: map[target]*targetMemory{}, gates: map[string]*sidecar.Observation{}, looks: map[remediations.Kind]int{}, replicaDown: map[string]bool{}, fleetHolds: map[remediations.Reason]toldHold{},
	}
}

// NeedLeaderElection makes the manager start the engine on the leader only.
func (e *Engine) NeedLeaderElection() bool { return true }

// Notice tells the engine that some Node changed in a way that may matter. It never blocks.
func (e *Engine) Notice() {
	select {
	case e.notice <- struct{}{}:
	default:
	}
}

// News tells the engine that Alertmanager has something to say that no Node shows. It never blocks.
func (e *Engine) News() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// Start runs until ctx ends: leadership is lost, or the program stops.
func (e *Engine) Start(ctx context.Context) error {
	e.lead()
	defer e.metrics.reset()
	defer close(e.over)
	poll := e.Clock.NewTicker(e.PollInterval)
	defer poll.Stop()
	e.look(ctx)
	for {
		timer := e.Clock.NewTimer(e.turn(ctx))
		more := e.await(ctx, timer.C(), poll.C())
		timer.Stop()
		if !more {
			return nil
		}
	}
}

// lead begins to lead.
func (e *Engine) lead() {
	e.metrics.leader.Set(1)
	e.metrics.setSelfTest(selftest.Unknown, time.Time{})
	e.lastCount, e.contest, e.knowsAll = lastCount{}, contest{}, false
	e.Log.Info("this replica leads", "policies", len(e.Config.Policies))
	e.led = e.Clock.Now()
}

// turn is one pass, with what is to be read for the next one, and says when that is due.
func (e *Engine) turn(ctx context.Context) time.Duration {
	next := e.pass(ctx)
	e.passed = e.Clock.Now()
	e.metrics.answered(sourceLoop, e.passed)
	e.prefetch(ctx)
	if e.lookDue {
		next = min(next, max(e.lookFrom.Sub(e.Clock.Now()), time.Millisecond))
	}
	return next
}

// await waits for what another pass must know of; false: there is none, since ctx ended.
func (e *Engine) await(ctx context.Context, next, poll <-chan time.Time) bool {
	for {
		select {
		case <-e.expected:
			e.prefetchLeases(ctx)
			continue // nothing is to be decided yet
		case <-e.nextHold():
			e.tellHold()
			continue
		case <-ctx.Done():
			e.finish(ctx)
			return false
		case <-e.notice:
			e.debounce(ctx, e.passed)
		case <-e.news:
			e.look(ctx)
		case l := <-e.looked:
			e.heard(ctx, l)
		case <-poll:
			e.poll(ctx)
		case c := <-e.calls:
			e.answered(c)
		case f := <-e.enqueued:
			f()
		case <-next:
			e.due(ctx)
		}
		return true
	}
}

// poll looks at Alertmanager when nobody asked for it.
func (e *Engine) poll(ctx context.Context) {
	if e.waiting || e.awaitsArrival() || e.ledgerOld(e.led) {
		// What waits may wait for a slot that one that led before took, or for what a person changes in the ledger. While
		// nothing waits it is hardly ever read: prefetch reads it before anything rests on it.
		e.ledger = nil
	}
	e.look(ctx)
}

// due is what comes before a pass that a decision asked for.
func (e *Engine) due(ctx context.Context) {
	if e.lookDue {
		e.look(ctx)
	}
}

// answered remembers what became of a call until the record has it.
func (e *Engine) answered(c called) {
	e.underway--
	e.metrics.Called(c.step, c.call.Outcome)
	c.trail.Log(e.Log).Info("the provider answered", "node", c.of.node, "step", c.step, "outcome", c.call.Outcome, "why", c.call.Why)
	c.call.Stop = e.core.refusesAccount(e.doubted, c)
	if c.of.kind != remediations.KindNode {
		if m := e.targets[c.of]; m != nil && m.call != nil && m.call.IntentID == c.call.IntentID {
			m.call = &c.call
		}
		return
	}
	e.silenced(c.call)
	if m := e.remember(c.of.node); m.call == nil || m.call.IntentID == c.call.IntentID {
		m.call = &c.call // a late answer to an earlier attempt says nothing of the one under way
	}
}
