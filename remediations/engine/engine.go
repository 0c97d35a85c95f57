// Package engine runs the loop: gather observations, decide, record the intent, act, verify. The
// loop runs on the leader alone, in one goroutine that owns all of its state. Only calls to
// providers and queries of Alertmanager run beside it.
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
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// Options are all that the engine needs. A field that may be nil says so.
type Options struct {
	Config  *remediations.Config
	Fleet   Fleet
	Journal Journal
	Store   LedgerStore
	Alerts  AlertSource
	// Actuators are the remediations that each provider carries out, by provider name and
	// remediation name. Config.Providers decides which provider serves which Node.
	Actuators map[string]map[string]Actuator
	Workers   map[string]Worker
	// Witnesses read the signs of their kind. Without a witness, the signs of that kind are
	// unknown.
	Witnesses map[signs.Kind]Witness
	// Sidecars is nil if no provider of sidecars is configured.
	Sidecars Sidecars
	// Locations is nil if no mesh with movable leaders is configured.
	Locations Locations
	// Reservers agree with other repair systems which system repairs a node: Config.Reserves.
	Reservers []Reserver
	// Conditions shows what Drydock does in the Nodes' conditions. Nil: no condition is set.
	Conditions Conditions
	// Repairers returns the other systems in the cluster that repair nodes. Nil: only systems that
	// the Nodes themselves show are known.
	Repairers func() []coverage.Repairer
	// Silencer is nil if Drydock creates no silences.
	Silencer Silencer
	Events   Recorder
	Metrics  prometheus.Registerer
	Clock    clock.WithTicker
	Log      logr.Logger
	// PollInterval is the time between two regular queries of Alertmanager.
	PollInterval time.Duration
	// CallTimeout bounds one call to a provider. A call normally takes far less.
	CallTimeout time.Duration
	// NewID returns a new repair ID, NewTask a new UUID for a sidecar's task.
	NewID, NewTask func() string
	// Adopt takes an alert that only a poll found for its Node, as alerts of posts are taken, and
	// returns it with what the Node remembers of it. Unchanged: an alert of a post waits to be
	// written. If the result is not Taken, a later poll tries again. Adopt must not block.
	Adopt func(n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result)
	// Charge returns why this installation is not in charge of the cluster and so changes nothing.
	// Empty: it is in charge. Nil: there is no other installation.
	Charge func() string
	// Admission returns what this replica's webhook received. Nil, or a nil result: there is no
	// webhook.
	Admission func() *ledger.Admission
	// Writes reports how the API server accepts Drydock's writes on Nodes. Nil: writes are not
	// watched.
	Writes func() Writes
	// Posts returns what this replica's receiver knows of the self-test. Nil: it knows nothing.
	Posts func() selftest.Posts
	// Below returns a random number from 0 up to, but not including, its argument. It samples a
	// large fleet's leases. Nil: all leases are listed, however many there are.
	Below func(n int) int
	// Beside runs work beside the loop: calls to providers and queries of Alertmanager. Nil: each
	// runs in a goroutine of its own.
	Beside func(func())
	// Decided receives each decision about a node before the decision is carried out. May be nil.
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
	// enqueued holds functions that bring results from beside the loop back into it.
	enqueued chan func()
	over     chan struct{}
	// looking: a query of Alertmanager is under way. lookAgain: another one was requested after it
	// began.
	looking, lookAgain bool
	// lookDue: a query was requested before lookFrom, the earliest time for the next query.
	lookDue  bool
	lookFrom time.Time
	// underway counts the calls to providers, surveys the unanswered questions about machines, and
	// testimonies the nodes whose signs are being read.
	underway, surveys, testimonies int

	word        *alerts.Snapshot
	sawWatchdog time.Time
	firing      map[string]time.Time
	replicaDown map[string]bool
	heartbeats  *signs.Heartbeats
	leases      leaseReadings
	// led is when this process became the leader, passed when its last pass ended.
	led, passed time.Time
	// listing delivers the leases that prefetchLeases requested. Nil: it requested no leases.
	listing   chan listed
	ledger    *ledger.Ledger
	ledgerErr error
	ledgerAt  string
	// gpusSeen is the version of the Nodes' GPUs that the ledger was last compared with. The ledger
	// keeps the number because a GPU that fails also disappears from the Node's label. cancelsOver
	// are cancels that the ledger must forget.
	gpusSeen    int
	cancelsOver []cancelOver
	// knowsAll: the ledger has the results of a complete pass over all Nodes, made after an answer
	// of Alertmanager.
	knowsAll bool
	// ledgerOut is the time during which the ledger cannot be read or saved, leasesOut during which
	// the leases cannot be listed. leaseOut is the time during which a single node's lease cannot
	// be read. conflicts counts the consecutive saves that met another writer's change.
	ledgerOut, leasesOut, leaseOut outage
	// learnOut is the time during which the ledger cannot be saved with what a pass has learned.
	learnOut    outage
	conflicts   int
	statusSaved ledger.Status
	// stored is the ledger's data as last read or saved. decoded is its decoded form and is never
	// changed. Nil: the data was not decoded.
	stored     map[string]string
	decoded    *ledger.Ledger
	connection connection
	lastCount  lastCount
	contest    contest
	memory     map[string]*memory
	silent     silentProviders
	// orphans are the memories of repairs whose Node is gone, by repair ID.
	orphans    map[string]*memory
	runs       int
	fleetHolds map[remediations.Reason]toldHold
	// breakersTold are the breakers as last reported to people. Nil: before the first pass with a
	// ledger.
	breakersTold map[string]ledger.Breaker
	long         longHolds
	again        bool
	// roster is what is known of the Nodes, after they were listed once. wrote are the memories of
	// Nodes whose last write the cache may not show yet. working are the names of Nodes with a
	// long-running step under way.
	roster     *fleet.Roster
	listedOnce bool
	wrote      map[string]*memory
	working    map[string]bool
	// ledgerRead is when the ledger was last read or written. waiting: in the last pass a guard
	// held something, or may still hold a repair that is under way. prefetchDue: prefetch has work
	// to do.
	ledgerRead           time.Time
	waiting, prefetchDue bool
	// adoptions counts the adopted alerts.
	adoptions int
	// blindSince is when this process became blind. Zero: it is not blind.
	blindSince time.Time
	// unrouted are the alerts in Alertmanager's answer that are not routed to Drydock.
	unrouted elsewhere
	// strays are the alerts that are routed to Drydock but match no policy.
	strays strays
	// outside is the earlier state that answers of the sources are compared with. attempts prevents
	// calling a provider twice for one attempt.
	outside
	attempts attempts
	// doubted are machines, by provider, whose call was refused because of the account. Whether the
	// account is really the cause is not confirmed yet.
	doubted map[string]target

	// targets remembers sidecars and locations. looks counts the observations of them that are
	// under way, and passes counts the passes. concerned counts the nodes that the last pass had to
	// decide about, busySidecars the sidecars under repair.
	targets      map[target]*targetMemory
	gates        map[string]*sidecar.Observation // the last observations that showed whether a pod's gate is open; they outlive the pod's alert
	looks        map[remediations.Kind]int
	passes       int
	concerned    int
	busySidecars int
	// sidecarsCounted is when busySidecars was counted.
	sidecarsCounted time.Time
}

type called struct {
	of             target
	call           lifecycle.Call
	step, provider string
	trail          Trail
}

// New creates an engine.
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

// Notice reports a change of a Node that may matter. It never blocks.
func (e *Engine) Notice() {
	select {
	case e.notice <- struct{}{}:
	default:
	}
}

// News reports that Alertmanager has news that no Node shows. It never blocks.
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

// lead resets the state that a new leader must not inherit.
func (e *Engine) lead() {
	e.metrics.leader.Set(1)
	e.metrics.setSelfTest(selftest.Unknown, time.Time{})
	e.lastCount, e.contest, e.knowsAll = lastCount{}, contest{}, false
	e.Log.Info("this replica leads", "policies", len(e.Config.Policies))
	e.led = e.Clock.Now()
}

// turn runs one pass, prefetches data for the next one, and returns the time until the next pass is
// due.
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

// await waits for the next reason to run a pass. It returns false when ctx has ended.
func (e *Engine) await(ctx context.Context, next, poll <-chan time.Time) bool {
	for {
		select {
		case <-e.expected:
			e.prefetchLeases(ctx)
			continue // there is nothing to decide yet
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
			e.received(ctx, l)
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

// poll queries Alertmanager at its regular interval.
func (e *Engine) poll(ctx context.Context) {
	if e.waiting || e.awaitsArrival() || e.ledgerOld(e.led) {
		// A waiting repair may need a slot that an earlier leader took, or a change that a person
		// makes in the ledger. While nothing waits, the ledger is rarely read: prefetch reads it
		// before a decision needs it.
		e.ledger = nil
	}
	e.look(ctx)
}

// due prepares a pass that a decision requested.
func (e *Engine) due(ctx context.Context) {
	if e.lookDue {
		e.look(ctx)
	}
}

// answered remembers the result of a call until the record has it.
func (e *Engine) answered(c called) {
	e.underway--
	e.metrics.Called(c.step, c.call.Outcome)
	c.trail.Log(e.Log).Info("the provider answered", "node", c.of.node, "step", c.step, "outcome", c.call.Outcome, "why", c.call.Why)
	c.call.Stop = e.core.refusesAccount(e.doubted, c)
	if c.call.Withheld != "" { // the record gives the attempt back
		e.attempts.settle(func(id string, _ attempted) bool { return id == c.call.IntentID })
	}
	if c.of.kind != remediations.KindNode {
		if m := e.targets[c.of]; m != nil && m.call != nil && m.call.IntentID == c.call.IntentID {
			m.call = &c.call
		}
		return
	}
	e.silenced(c.call)
	if m := e.remember(c.of.node); m.call == nil || m.call.IntentID == c.call.IntentID {
		m.call = &c.call // a late answer to an earlier attempt does not apply to the current one
	}
}
