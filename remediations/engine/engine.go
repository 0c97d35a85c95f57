// Package engine runs the control loop. A pass of the loop goes through the nodes: it gathers
// observations, decides, records the intent, acts, and verifies. The loop runs only on the leader,
// in one goroutine that owns all of its state. Calls to providers, queries of Alertmanager, and
// slow reads run in other goroutines.
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

// Options holds the engine's dependencies and settings. A field may be nil only if its comment says
// so.
type Options struct {
	Config *remediations.Config
	Fleet  Fleet
	Writer NodeWriter
	Store  LedgerStore
	Alerts AlertSource
	// Actuators carry out remediations. The first key is the provider's name, the second key the
	// remediation's name. Config.Providers decides which provider serves which Node.
	Actuators map[string]map[string]Actuator
	Workers   map[string]Worker
	// Witnesses read the signs that must confirm an alert, by kind of sign. A sign is a fact about
	// the node itself. If a kind has no Witness here, its signs are unknown.
	Witnesses map[signs.Kind]Witness
	// Sidecars is nil if no provider of sidecars is configured.
	Sidecars Sidecars
	// Locations is nil if no mesh with movable leaders is configured.
	Locations Locations
	// Reservers agree with other repair systems which system repairs a node. They are used only if
	// Config.Reserves is set.
	Reservers []Reserver
	// Conditions shows in each Node's conditions what Drydock does with the node. If Conditions is
	// nil, Drydock sets no condition.
	Conditions Conditions
	// Repairers returns the other systems in the cluster that repair nodes. If Repairers is nil,
	// only the systems that the Nodes themselves show are known.
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
	// NewID returns a new repair ID. NewTask returns a new UUID for the task that a repair sends to
	// a pod's sidecar.
	NewID, NewTask func() string
	// Adopt takes an alert that only a poll of Alertmanager found, and no webhook post brought. It
	// queues the alert for writing on the Node. It returns the alert, completed from what the Node
	// already shows of it. The result is Unchanged if a post of the same alert already waits to be
	// written. If the result is not Taken, a later poll tries again. Adopt must not block.
	Adopt func(n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result)
	// Charge returns why this installation is not in charge of the cluster and so changes nothing.
	// An empty string means that it is in charge. If Charge is nil, there is no other installation.
	Charge func() string
	// Admission returns the times of this replica's validating webhook: the start, and the last
	// request. If Admission or its result is nil, there is no webhook.
	Admission func() *ledger.Admission
	// Writes reports whether the API server accepts Drydock's writes on Nodes. If Writes is nil,
	// nothing watches these writes.
	Writes func() Writes
	// Posts returns, for the self-test, when Alertmanager's posts last arrived at this replica. If
	// Posts is nil, that is unknown.
	Posts func() selftest.Posts
	// Below returns a random number from 0 up to, but not including, its argument. The engine uses
	// it to sample a large fleet's leases. If Below is nil, the engine always lists all leases.
	Below func(n int) int
	// Beside runs a function that the loop must not wait for: a call to a provider, a query of
	// Alertmanager, or a slow read. If Beside is nil, each function runs in a goroutine of its own.
	Beside func(func())
	// Decided receives each decision about a node before the decision is carried out. It may be
	// nil.
	Decided func(node string, d lifecycle.Decision)
}

// Engine is the control loop. It is a manager.Runnable that needs leadership.
type Engine struct {
	Options
	core    core
	metrics *metrics
	notice  chan struct{}
	news    chan struct{}
	// expected signals that an alert is about to be written on a Node.
	expected chan struct{}

	looked chan looked
	calls  chan called
	// enqueued holds functions that bring results from other goroutines back into the loop's
	// goroutine.
	enqueued chan func()
	over     chan struct{}
	// looking is true while a query of Alertmanager runs. lookAgain is true if another query was
	// requested during the running query.
	looking, lookAgain bool
	// lookDue is true if a query was requested before lookFrom, the earliest time for the next
	// query.
	lookDue  bool
	lookFrom time.Time
	// underway counts the calls to providers that have not returned. surveys counts the unanswered
	// questions to providers about machines. testimonies counts the nodes whose signs of a fault
	// are being read.
	underway, surveys, testimonies int

	word        *alerts.Snapshot
	sawWatchdog time.Time
	firing      map[string]time.Time
	replicaDown map[string]bool
	heartbeats  *signs.Heartbeats
	leases      leaseReadings
	// led is when this process became the leader. passed is when its last pass ended.
	led, passed time.Time
	// listing delivers the leases that prefetchLeases requested. It is nil if no list was
	// requested.
	listing   chan listed
	ledger    *ledger.Ledger
	ledgerErr error
	ledgerAt  string
	// gpusSeen is the version of the roster's GPU numbers that the ledger already has. The ledger
	// keeps each node's number of GPUs, because a GPU that fails also disappears from the Node's
	// label. cancelsOver are people's cancels that have lost their effect, and that must be removed
	// from the ledger.
	gpusSeen    int
	cancelsOver []cancelOver
	// knowsAll is true once the ledger has the results of a complete pass over all Nodes. That pass
	// must be newer than an answer of Alertmanager.
	knowsAll bool
	// ledgerOut describes the present failure to read or save the ledger. leasesOut describes the
	// failure to list all leases, and leaseOut the failure to read a single lease. conflicts counts
	// the consecutive saves of the ledger that met another writer's change.
	ledgerOut, leasesOut, leaseOut outage
	// learnOut describes the present failure to save in the ledger what a pass has learned.
	learnOut    outage
	conflicts   int
	statusSaved ledger.Status
	// stored is the ledger's data as last read or saved. decoded is its decoded form and is never
	// changed. decoded is nil until the data is decoded.
	stored     map[string]string
	decoded    *ledger.Ledger
	connection connection
	lastCount  lastCount
	contest    contest
	memory     map[string]*memory
	silent     silentProviders
	// orphans are the memories of repairs whose Node is gone. The key is the repair's ID.
	orphans    map[string]*memory
	runs       int
	fleetHolds map[remediations.Reason]toldHold
	// breakersTold are the breakers as the last Events described them. It is nil before the first
	// pass with a ledger.
	breakersTold map[string]ledger.Breaker
	long         longHolds
	again        bool
	// roster has the Nodes and what is derived from them. listedOnce is true once the Nodes were
	// listed. wrote are the memories of Nodes whose last write the cache may not show yet. working
	// are the names of Nodes with a long-running step under way.
	roster     *fleet.Roster
	listedOnce bool
	wrote      map[string]*memory
	working    map[string]bool
	// ledgerRead is when the ledger was last read or written. waiting is true if the last pass left
	// a held repair, a repeatable step that is running, or a repair whose Node is gone. prefetchDue
	// is true if prefetch has work to do.
	ledgerRead           time.Time
	waiting, prefetchDue bool
	// adoptions counts the polls whose alerts were adopted. Each poll uses the number to choose the
	// alert that it handles first.
	adoptions int
	// blindSince is when this process became blind: it could no longer judge how many nodes are
	// unhealthy. Zero means that it is not blind.
	blindSince time.Time
	// unrouted are the alerts in Alertmanager's answer that are not routed to Drydock.
	unrouted elsewhere
	// strays are the alerts that are routed to Drydock but match no policy.
	strays strays
	// outside is the last known state of the data sources, for comparison with their next answers.
	// attempts prevents a second call to a provider for one attempt.
	outside
	attempts attempts
	// doubted are the targets whose call was refused because of the provider's account. The key is
	// the provider's name. A second refusal must confirm that the account is the cause.
	doubted map[string]target

	// targets is the memory of sidecars and locations. looks counts their observations that are
	// running, by kind. passes counts the passes. concerned counts the nodes that the last pass
	// decided about. busySidecars counts the sidecars under repair.
	targets map[target]*targetMemory
	// gates has each pod's last observation that showed whether the pod's sidecar is ready, also
	// after the pod's alert has ended. The key is the pod's name.
	gates        map[string]*sidecar.Observation
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
		core.lookLongest = 0 // with Beside set, this is a simulation: its sources answer at once, and its clock has no timers
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

// News requests a query of Alertmanager because of a change that no Node shows. It never blocks.
func (e *Engine) News() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// Start runs the loop until ctx ends: this replica has lost leadership, or the program stops.
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

// lead prepares the state of a process that has just become the leader.
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

// await waits for the next reason to run a pass. It returns false once ctx has ended.
func (e *Engine) await(ctx context.Context, next, poll <-chan time.Time) bool {
	for {
		select {
		case <-e.expected:
			e.prefetchLeases(ctx)
			continue // a decision is only possible once the alert is written
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
		// A waiting repair may need a slot in the ledger that an earlier leader still occupies, or
		// a change that a person makes there. So the ledger is read again. If no repair waits, the
		// old copy stays: prefetch reads the ledger before a decision needs it.
		e.ledger = nil
	}
	e.look(ctx)
}

// due makes the query of Alertmanager that look has delayed, if there is one. It runs when the time
// of a scheduled pass has come.
func (e *Engine) due(ctx context.Context) {
	if e.lookDue {
		e.look(ctx)
	}
}

// answered keeps the result of a call in memory until the record has it.
func (e *Engine) answered(c called) {
	e.underway--
	e.metrics.Called(c.step, c.call.Outcome)
	c.trail.Log(e.Log).Info("the provider answered", "node", c.of.node, "step", c.step, "outcome", c.call.Outcome, "why", c.call.Why)
	c.call.Stop = e.core.refusesAccount(e.doubted, c)
	if c.call.Withheld != "" { // the record will give the attempt back
		e.attempts.dismiss(func(id string, _ attempted) bool { return id == c.call.IntentID })
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
