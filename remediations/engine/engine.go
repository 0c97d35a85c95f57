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

// Options holds the engine's dependencies. A field may be nil only if its comment says so.
type Options struct {
	Config *remediations.Config
	Fleet  Fleet
	Writer NodeWriter
	Store  LedgerStore
	Alerts AlertSource
	// Actuators are keyed by the provider's name, then by the remediation's name.
	Actuators map[string]map[string]Actuator
	Workers   map[string]Worker
	// Witnesses read the signs of a fault that confirm an alert. A kind without a Witness is
	// unknown.
	Witnesses map[signs.Kind]Witness
	// Sidecars may be nil.
	Sidecars Sidecars
	// Locations may be nil.
	Locations Locations
	// Reservers are used only if Config.Reserves is set.
	Reservers  []Reserver
	Conditions Conditions
	// Repairers returns the other systems in the cluster that repair nodes. It may be nil.
	Repairers func() []coverage.Repairer
	// Silencer may be nil: then Drydock creates no silences.
	Silencer     Silencer
	Events       Recorder
	Metrics      prometheus.Registerer
	Clock        clock.WithTicker
	Log          logr.Logger
	PollInterval time.Duration
	// CallTimeout bounds one call to a provider.
	CallTimeout time.Duration
	// NewID returns a new repair ID. NewTask returns a new UUID for what a repair sends to a
	// sidecar.
	NewID, NewTask func() string
	// Adopt queues an alert that only a poll of Alertmanager found, for writing on the Node. It
	// returns the alert, completed from what the Node already shows. If the result is not Taken, a
	// later poll tries again. Adopt must not block.
	Adopt func(n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result)
	// Charge returns why this installation is not in charge of the cluster, or an empty string if
	// it is. Nil means that there is no other installation.
	Charge func() string
	// Admission returns when this replica's webhook started and was last called. Nil, here or as
	// the result, means that there is no webhook.
	Admission func() *ledger.Admission
	// Writes reports whether the API server accepts Drydock's writes on Nodes. It may be nil.
	Writes func() Writes
	// Posts returns when Alertmanager's posts last arrived at this replica. It may be nil.
	Posts func() selftest.Posts
	// Below returns a random number from 0 up to, but not including, its argument. Nil means that
	// all leases are always listed, never a sample.
	Below func(n int) int
	// Beside runs a function that the loop must not wait for. If it is nil, each function runs in a
	// goroutine of its own.
	Beside func(func())
	// Decided receives each decision about a node before it is carried out. It may be nil.
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
	// enqueued holds functions that bring results of other goroutines back into the loop.
	enqueued chan func()
	over     chan struct{}
	// lookAgain is true if another query of Alertmanager was requested while one runs.
	looking, lookAgain bool
	// lookDue is true if a query waits for lookFrom, the earliest time for the next one.
	lookDue  bool
	lookFrom time.Time
	// These count the calls to providers, the questions to providers, and the nodes whose signs are
	// being read.
	underway, surveys, testimonies int

	word        *alerts.Snapshot
	sawWatchdog time.Time
	firing      map[string]time.Time
	replicaDown map[string]bool
	heartbeats  *signs.Heartbeats
	leases      leaseReadings
	led, passed time.Time
	listing     chan listed
	ledger      *ledger.Ledger
	ledgerErr   error
	ledgerAt    string
	// gpusSeen is the version of the GPU numbers that the ledger already has. The ledger keeps
	// them, because a GPU that fails also disappears from the Node's label.
	gpusSeen    int
	cancelsOver []cancelOver
	// knowsAll is true once the ledger has the results of a complete pass that is newer than an
	// answer of Alertmanager.
	knowsAll bool
	// leasesOut is the failure to list all leases, leaseOut the failure to read a single one.
	// conflicts counts the consecutive saves of the ledger that met another writer's change.
	ledgerOut, leasesOut, leaseOut outage
	learnOut                       outage
	conflicts                      int
	statusSaved                    ledger.Status
	// stored is the ledger's data as last read or saved. decoded is the same, decoded. It is never
	// changed, and nil until it is needed.
	stored     map[string]string
	decoded    *ledger.Ledger
	connection connection
	lastCount  lastCount
	contest    contest
	memory     map[string]*memory
	silent     silentProviders
	// orphans are the memories of repairs whose Node is gone, by the repair's ID.
	orphans    map[string]*memory
	runs       int
	fleetHolds map[remediations.Reason]toldHold
	// breakersTold is what the last Events said. It is nil before the first pass with a ledger.
	breakersTold map[string]ledger.Breaker
	long         longHolds
	again        bool
	// wrote are the memories of Nodes whose last write the cache may not show yet. working are the
	// names of Nodes with a long-running step.
	roster     *fleet.Roster
	listedOnce bool
	wrote      map[string]*memory
	working    map[string]bool
	// waiting is true if the last pass left something that may continue without a new alert.
	ledgerRead           time.Time
	waiting, prefetchDue bool
	// adoptions makes each poll start with another alert.
	adoptions int
	// blindSince is when this process became unable to judge how many nodes are unhealthy, or zero.
	blindSince time.Time
	unrouted   elsewhere
	// strays are the alerts that reach Drydock and match no policy.
	strays strays
	// attempts prevents a second call to a provider for one attempt.
	outside
	attempts attempts
	// doubted are the targets whose call was refused because of the provider's account, by
	// provider. A second refusal must confirm that the account is the cause.
	doubted map[string]target

	// looks counts the running observations. concerned counts the nodes that the last pass decided
	// about, and busySidecars the sidecars under repair.
	targets map[target]*targetMemory
	// gates has the last observation that showed whether a pod's sidecar is ready, by pod. It stays
	// after the alert has ended.
	gates           map[string]*sidecar.Observation
	looks           map[remediations.Kind]int
	passes          int
	concerned       int
	busySidecars    int
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

// Start runs the loop until ctx ends.
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

func (e *Engine) lead() {
	e.metrics.leader.Set(1)
	e.metrics.setSelfTest(selftest.Unknown, time.Time{})
	e.lastCount, e.contest, e.knowsAll = lastCount{}, contest{}, false
	e.Log.Info("this replica leads", "policies", len(e.Config.Policies))
	e.led = e.Clock.Now()
}

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

func (e *Engine) poll(ctx context.Context) {
	if e.waiting || e.awaitsArrival() || e.ledgerOld(e.led) {
		// A waiting repair may need a slot that an earlier leader still occupies, or a change that
		// a person makes in the ledger. So the ledger is read again. If no repair waits, prefetch
		// reads it before a decision needs it.
		e.ledger = nil
	}
	e.look(ctx)
}

func (e *Engine) due(ctx context.Context) {
	if e.lookDue {
		e.look(ctx)
	}
}

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
