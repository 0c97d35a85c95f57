package engine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
)

// The model world is all that the engine touches, in memory: an API server with resourceVersions, a ledger, machines
// that break and boot, two Alertmanagers, a provider. It runs in a synctest bubble, so that its time is nobody's time.
// It checks what must always hold at every write and every call; see model_check*_test.go.

const (
	ready    = corev1.ConditionTrue
	gone     = corev1.ConditionUnknown
	leaseFor = 40 * time.Second
)

// nodeEvent is one change of a Node, as a watch tells it.
type nodeEvent struct {
	at   time.Time
	name string
	node *corev1.Node // nil: deleted
}

// providerMood is how the provider treats the next calls.
type providerMood struct {
	// refuse: it says no. cut: it does it, and the answer is lost. idle: it says yes, and does nothing.
	refuse, cut, idle bool
	// before and after are how long it takes before and after the work is done, between how long from one key to the next.
	before, after, between time.Duration
	// unread: it cannot read what it needs before its call.
	unread bool
	// unreached: what it says beforehand is that its machine's controller does not answer or, with fleetwide, that it does not itself.
	unreached bool
	// later: it refuses the call itself, and would take it later.
	later bool
	// account: it refuses the account. late: it answers an attempt that was given up. survey is how long it takes to say
	// what it knows of a machine, trouble what is against the step, fleetwide that this is so of each.
	account, late, fleetwide bool
	survey                   time.Duration
	trouble                  string
}

type providerCall struct {
	node, intent, step string
	at                 time.Time
	by                 *instance
	// lost: the store went back to what it was before.
	lost bool
}

type world struct {
	// log is that of each engine; the zero value writes nothing.
	log logr.Logger
	// actuators and witnesses are those that the world does not know.
	actuators map[string]Actuator
	witnesses map[signs.Kind]Witness
	// reservers are those who share with Drydock who repairs a node.
	reservers []Reserver
	// writes says how the API server takes what Drydock writes on Nodes; nil: it takes all.
	writes func() Writes
	// lastLook is called when a Node is read from the API server itself; nil: nothing is.
	lastLook func()
	// charge is why this installation is not in charge of the cluster.
	charge string
	// repairers are the other systems that were found to repair nodes.
	repairers func() []coverage.Repairer

	mu sync.Mutex
	// core is that of each engine that begins to lead.
	core core
	// admit says what room a Node has for one more alert, as the receiver has it.
	admit  func(annotations map[string]string, a remediations.Alert) (drop []string, ok bool)
	config *remediations.Config
	layout layout

	rv       int
	editedAt time.Time // when rv was last raised
	back     wentBack
	// gpus: its machines have GPUs. gpusAt is how many the node's label said when a repair began to act, by repair.
	gpus     bool
	gpusAt   map[string]int
	nodes    map[string]*corev1.Node
	machines map[string]*machine
	events   []nodeEvent
	lag      int
	// roundTrip is what a call that changes something takes at least.
	roundTrip time.Duration
	known     map[string]bool
	// overSince is since when, without a break, more nodes of the scope were not Ready than its breaker lets be.
	overSince map[string]time.Time
	// wide is the repair that last changed the whole cluster.
	wide ledger.Begun

	// nonsense are names of no Node, which alerts that fire all the time have.
	nonsense []string

	ledger   map[string]string
	ledgerRV int

	replicas   [2]replicaState
	lookTakes  time.Duration
	pollEvery  time.Duration
	sourceDead bool
	sourceDied time.Time
	lastSent   []sent
	crowd      int // so many more alerts fire on n0
	blindBy    string
	selfTest   []alerts.Alert // what both Alertmanagers show
	looks      []lookAnswer
	// leasesFrozen is since when no lease is renewed; zero: they are.
	leasesFrozen time.Time

	mood  providerMood
	calls []providerCall
	// odd is what the controller of one machine answers. accountRefused are the machines for which the account was refused.
	odd map[string]error
	// mute is the machine whose controller answers no question. answers are those to questions, tries the last ones to calls, by node.
	mute           string
	answers        map[string][]answerGiven
	tries          map[string][]tryMade
	accountRefused map[string]bool
	// served are the nodes that each of several providers was asked about, or told to act on.
	served map[string]map[string]bool
	// evictions are those of all drains.
	evictions []providerCall
	recycling recycling
	// promisesNone: the provider brings no machine for one that it took away unless something needs it. waits: a pod does, or did until waited.
	promisesNone, waits bool
	waited              time.Time
	// beforeDrain happens once, when a drain is about to begin; kept is a ledger that somebody spoilt.
	beforeDrain func()
	kept        map[string]string
	recycled    int
	born        map[string]time.Time // by providerID, when a machine came for another one
	replacing   map[string]string    // by providerID, the repair that has it replaced
	faults      map[string][]string  // by operation: conflict, lost, written, empty
	unwritable  string               // the Node on which no write succeeds
	refuses     string               // the Node on which the API server refuses every write
	unreadable  string               // the Node that the API server does not give
	always      map[string]string    // a fault that does not end
	// dice pick the sample of the leases.
	dice *rand.Rand
	// leasesTake is how long a list of the leases takes.
	leasesTake time.Duration
	// blindSince is when such a fault of the leases began.
	blindSince time.Time
	lies       lies

	silencer Silencer // nil: Drydock makes no silences
	gates    *gates   // nil: no pod has a gated sidecar
	mesh     *mesh    // nil: there are no locations

	ids       int
	instances []*instance
	// stands counts the decisions that were not made again.
	stands    int
	violation string
	told      []Event
	// toldOn are the Events about holds, with the node that each is about; empty: the ledger.
	toldOn    []heldOn
	ended     []remediations.Entry
	begun     map[string][]time.Time // by machine, when its repairs began to act
	finished  map[string]time.Time   // by node and policy, when the last repair that acted ended
	cured     map[string]curedAt     // by node and policy, how its last repair ended, if that was a cure
	paused    map[string]time.Time   // since when a person holds the node
	glass     map[string]time.Time   // since when its glass is broken
	cancelled map[string]time.Time   // by repair, since when a person wants it cancelled
	of        map[string]string      // by repair, the providerID of the machine of which its first record spoke
	unfounded map[string]time.Time   // since when the Node shows no fault
	// uncordoned is since when the node is not cordoned.
	uncordoned map[string]time.Time
}

// modelSampling samples a fleet of the model's size. It is never wrong there: of six nodes at most three have a fresh lease
// where at least half are stale, so that four nodes always show a stale one.
var modelSampling = signs.Sampling{From: 5, Size: 4, Stale: 0}

// lies are ports that do not keep what they promise: the knock-out turns them on.
type lies struct {
	forgetIntents, forgetSlots, ignoreNodeVersion, ignoreLedgerVersion, neverAsk, ownsEveryCordon, ownsEveryAnnouncement, ghosts bool
	// freshSample: a sample calls every lease fresh.
	freshSample bool
	// keepSlots: who frees a slot only believes it.
	keepSlots bool
	// askOnce: the leaders' port asks before the first key alone.
	askOnce bool
	// drains: that do not hear of their end, or do not look at the Node. provesAnything: each replacement is proven.
	deafDrains, blindDrains, provesAnything, forgetOrphans bool
	// noneNeeded: the provider says that no machine is needed as soon as the old one is gone.
	noneNeeded bool
	// forgetGPUs: what is saved has no numbers of GPUs.
	forgetGPUs bool
}

func newWorld(c *remediations.Config, nodes int) *world {
	return newWorldOf(c, nodes, layout{nodes, 1, 0})
}

func newWorldOf(c *remediations.Config, nodes int, l layout) *world {
	w := &world{
		accountRefused: map[string]bool{}, gpusAt: map[string]int{}, answers: map[string][]answerGiven{}, tries: map[string][]tryMade{},
		core: wholeCore(), admit: remediations.Admit, dice: rand.New(rand.NewPCG(1, 2)), config: c, layout: l, nodes: map[string]*corev1.Node{}, machines: map[string]*machine{}, faults: map[string][]string{},
		always: map[string]string{}, known: map[string]bool{}, paused: map[string]time.Time{}, overSince: map[string]time.Time{},
		begun: map[string][]time.Time{}, finished: map[string]time.Time{}, cured: map[string]curedAt{}, glass: map[string]time.Time{}, cancelled: map[string]time.Time{}, of: map[string]string{}, unfounded: map[string]time.Time{}, uncordoned: map[string]time.Time{}, born: map[string]time.Time{}, replacing: map[string]string{},
		recycling: recycling{nodeGoes: 30 * time.Second, joins: 2 * time.Minute}, promisesNone: c.PromisesNone("replace", &remediations.Intent{}), rv: 100, roundTrip: 10 * time.Millisecond, pollEvery: 15 * time.Second,
		editedAt: time.Now(), nonsense: []string{"ghost", "N0; reboot", "../n0"},
	}
	w.core.stood = w.stood
	for i := range nodes {
		w.join(fmt.Sprintf("n%d", i), "civo://m"+strconv.Itoa(i))
	}
	for i := range w.events {
		w.events[i].at = w.events[i].at.Add(-time.Hour) // what a cache knew a moment before the history begins is known, too
	}
	return w
}

// stood holds a decision that was not made again against the one that would be made.
func (w *world) stood(s *lifecycle.State, d lifecycle.Decision, now time.Time) {
	fresh := node.Decide(s, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stands++
	if !reflect.DeepEqual(fresh, d) {
		w.fail("the decision about %s stands as %s %s: %s; made again it is %s %s: %s", s.Node.Name, d.Verb, d.Reason, d.Message, fresh.Verb, fresh.Reason, fresh.Message)
	}
}

// fail keeps the first thing that must never be, and ends all processes. It is asked for after every step. The world is locked.
func (w *world) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = time.Now().UTC().Format("15:04:05") + " " + fmt.Sprintf(format, args...)
	}
	w.endAll() // a broken engine may go round for ever
}

// edit changes the Node as the API server has it.
func (w *world) edit(name string, change func(*corev1.Node)) {
	n := w.nodes[name]
	if n == nil {
		return
	}
	n = n.DeepCopy()
	was := n.Spec.Unschedulable
	change(n)
	if was && !n.Spec.Unschedulable {
		w.uncordoned[name] = time.Now()
	}
	w.revise()
	n.ResourceVersion = strconv.Itoa(w.rv)
	w.nodes[name] = n
	w.events = append(w.events, nodeEvent{at: time.Now(), name: name, node: n})
	w.elect()
	w.notice()
}

// revise raises the store's revision. Leases are renewed all the time, and each renewal is a revision.
func (w *world) revise() {
	w.rv += 1 + int(time.Since(w.editedAt)/time.Second)
	w.editedAt = time.Now()
}

// notice tells the engines, and once more when the last of their caches has caught up.
func (w *world) notice() {
	w.tellAll()
	if w.lag > 0 {
		w.in(cacheLag, w.tellAll)
	}
}

func (w *world) tellAll() {
	for _, i := range w.instances {
		if !i.dead {
			i.engine.Notice()
		}
	}
}

// hold and unhold are a person's pause, exclusion or broken glass.
func (w *world) hold(name string, change func(*corev1.Node)) {
	if w.nodes[name] == nil {
		return
	}
	if _, held := w.paused[name]; !held {
		w.paused[name] = time.Now()
	}
	w.edit(name, change)
}

// breakGlass holds the node for an hour.
func (w *world) breakGlass(name string) {
	if w.nodes[name] != nil {
		w.glass[name] = time.Now()
		w.hold(name, edit(remediations.BreakGlassKey, "why, at "+time.Now().String()))
	}
}

// mended is told that Drydock takes the glass's key off.
func (w *world) mended(n *corev1.Node) {
	if since := w.glass[n.Name]; time.Since(since)+truncated < time.Hour {
		w.fail("9: the glass of %s was mended %s after it was broken", n.Name, time.Since(since))
	}
	_, paused := n.Annotations[remediations.PauseKey]
	if !paused && !remediations.Excluded(n) {
		delete(w.paused, n.Name)
	}
}

func (w *world) unhold(name string) {
	delete(w.paused, name)
	w.edit(name, func(n *corev1.Node) {
		delete(n.Annotations, remediations.PauseKey)
		delete(n.Annotations, remediations.BreakGlassKey)
		delete(n.Labels, remediations.ExcludeLabel)
	})
}

// toldSuperseded says that people heard of a repair of the node that ended because somebody took its Node or its record away.
func (w *world) toldSuperseded(name string) bool {
	return slices.ContainsFunc(w.told, func(e Event) bool {
		return e.Reason == "RepairSuperseded" && strings.Contains(e.Note, "Node "+name+" ")
	})
}

func (w *world) record(name string) *remediations.Record {
	if n := w.nodes[name]; n != nil {
		return modelRegistry.ReadJournal(n).Record
	}
	return nil
}

// book is the ledger as it is kept; nil: there is none, or it cannot be read.
func (w *world) book() *ledger.Ledger {
	l, err := ledger.Decode(w.ledger)
	if err != nil {
		return nil
	}
	return l
}
