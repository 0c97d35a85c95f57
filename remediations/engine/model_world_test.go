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

// The model world is everything that the engine uses, in memory: an API server with
// resourceVersions, a ledger, machines that break and boot, two Alertmanagers, and a provider. It
// runs in a synctest bubble with its own time. It checks the invariants at every write and every
// call (see model_check*_test.go).

const (
	ready    = corev1.ConditionTrue
	gone     = corev1.ConditionUnknown
	leaseFor = 40 * time.Second
)

// nodeEvent is one change of a Node, as a watch delivers it.
type nodeEvent struct {
	at   time.Time
	name string
	node *corev1.Node // nil if the Node was deleted
}

// providerMood is how the provider treats the next calls.
type providerMood struct {
	// refuse means that it refuses. cut means that it does the work, and the answer is lost. idle
	// means that it accepts, and does nothing.
	refuse, cut, idle bool
	// before and after are how long it takes before and after the work. between is how long it
	// takes from one key to the next.
	before, after, between time.Duration
	// unread means that it cannot read what it needs before its call.
	unread bool
	// unreached means that a survey reports that the machine's controller does not answer. Together
	// with fleetwide, the provider itself does not answer.
	unreached bool
	// later means that it refuses the call itself, and would accept it later.
	later bool
	// account means that it refuses the account. late means that it answers an attempt that was
	// given up. survey is how long a survey of a machine takes. trouble is why the survey objects
	// to the step. fleetwide means that the trouble concerns every machine.
	account, late, fleetwide bool
	survey                   time.Duration
	trouble                  string
}

type providerCall struct {
	node, intent, step string
	at                 time.Time
	by                 *instance
	// lost means that the store went back to its state before this.
	lost bool
}

type world struct {
	// log is the log of each engine. The zero value writes nothing.
	log logr.Logger
	// actuators and witnesses are additional ones that the world does not know.
	actuators map[string]Actuator
	witnesses map[signs.Kind]Witness
	// reservers agree with Drydock which system repairs a node.
	reservers []Reserver
	// writes reports whether the API server accepts Drydock's writes on Nodes. If it is nil, all
	// are accepted.
	writes func() Writes
	// lastLook is called when a Node is read from the API server itself. It may be nil.
	lastLook func()
	// charge is why this installation is not in charge of the cluster.
	charge string
	// repairers are the other systems in the cluster that repair nodes.
	repairers func() []coverage.Repairer

	mu sync.Mutex
	// core is the core of each engine that becomes the leader.
	core core
	// admit returns whether a Node has room for one more alert, as the receiver decides it.
	admit  func(annotations map[string]string, a remediations.Alert) (drop []string, ok bool)
	config *remediations.Config
	layout layout

	rv       int
	editedAt time.Time // when rv was last raised
	back     wentBack
	// gpus means that its machines have GPUs. gpusAt is the number on the node's label when a
	// repair began to act, by repair.
	gpus     bool
	gpusAt   map[string]int
	nodes    map[string]*corev1.Node
	machines map[string]*machine
	events   []nodeEvent
	lag      int
	// roundTrip is the least time of a call that changes something.
	roundTrip time.Duration
	known     map[string]bool
	// overSince is since when more nodes of the scope are continuously not Ready than its breaker
	// allows.
	overSince map[string]time.Time
	// wide is the repair that last changed the whole cluster.
	wide ledger.Begun

	// nonsense are names in alerts that always fire, and that no Node has.
	nonsense []string

	ledger   map[string]string
	ledgerRV int

	replicas   [2]replicaState
	lookTakes  time.Duration
	pollEvery  time.Duration
	sourceDead bool
	sourceDied time.Time
	lastSent   []sent
	crowd      int // the number of further alerts that fire on n0
	blindBy    string
	selfTest   []alerts.Alert // what both Alertmanagers show
	looks      []lookAnswer
	// leasesFrozen is since when no lease is renewed. It is zero if the leases are renewed.
	leasesFrozen time.Time

	mood  providerMood
	calls []providerCall
	// odd is the answer of one machine's controller. accountRefused are the machines whose calls
	// were refused because of the account.
	odd map[string]error
	// mute is the machine whose controller answers no question. answers are the answers to
	// questions. tries are the last answers to calls, by node.
	mute           string
	answers        map[string][]answerGiven
	tries          map[string][]tryMade
	accountRefused map[string]bool
	// served are the nodes that each of several providers was asked about, or was called for.
	served map[string]map[string]bool
	// evictions are the evictions of all drains.
	evictions []providerCall
	recycling recycling
	// promisesNone means that the provider brings a new machine only if something needs one. waits
	// means that a pod needs one, or did until waited.
	promisesNone, waits bool
	waited              time.Time
	// refusesGPUs means that the API server refuses a ledger with numbers of GPUs.
	refusesGPUs bool
	// beforeDrain runs once, when a drain is about to begin. kept is a damaged ledger.
	beforeDrain func()
	kept        map[string]string
	recycled    int
	// outlets means that the provider reboots by switching a machine off, and on again later.
	outlets bool
	// powerTakes is how long after an accepted request a machine is switched off.
	powerTakes time.Duration
	// hangs means that a provider does not answer whether a machine is off.
	hangs       bool
	born        map[string]time.Time // by providerID, when a machine replaced another one
	replacing   map[string]string    // by providerID, the repair that replaces it
	lostOrphans []ledger.Orphan      // in the ledger when a person deleted it
	faults      map[string][]string  // by operation: conflict, lost, written, empty
	unwritable  string               // no write on this Node succeeds
	refuses     string               // the API server refuses every write on this Node
	unreadable  string               // the Node that the API server does not return
	always      map[string]string    // a fault that does not end
	// dice draw the sample of the leases.
	dice *rand.Rand
	// leasesTake is how long a list of the leases takes.
	leasesTake time.Duration
	// blindSince is when such a fault of the leases began.
	blindSince time.Time
	lies       lies

	silencer Silencer // if nil, Drydock creates no silences
	gates    *gates   // if nil, no pod has a gated sidecar
	mesh     *mesh    // if nil, there are no locations

	ids       int
	instances []*instance
	// stands counts the decisions that were used again.
	stands    int
	violation string
	told      []Event
	// toldOn are the Events about holds, with the node of each. An empty node means that the Event
	// is about the ledger.
	toldOn          []heldOn
	ended           []remediations.Entry
	begun           map[string][]time.Time // by machine, when its repairs began to act
	finished        map[string]time.Time   // by node and policy, when the last repair that acted ended
	cured           map[string]curedAt     // by node and policy, how its last repair ended, if that was a cure
	paused          map[string]time.Time   // since when a person holds the node
	breakGlassSince map[string]time.Time   // since when break-glass is set on it
	cancelled       map[string]time.Time   // by repair, since when a person wants it cancelled
	of              map[string]string      // by repair, the providerID of the machine in its first record
	unfounded       map[string]time.Time   // since when the Node shows no fault
	// uncordoned is since when the node is not cordoned.
	uncordoned map[string]time.Time
}

// modelSampling samples a fleet of the model's size. It is never wrong there: if at least half of
// six nodes are stale, at most three have a fresh lease. So four nodes always show a stale one.
var modelSampling = signs.Sampling{From: 5, Size: 4, Stale: 0}

// lies are ports that break their promises. The knock-out tests turn them on.
type lies struct {
	forgetIntents, forgetSlots, ignoreNodeVersion, ignoreLedgerVersion, neverAsk, ownsEveryCordon, ownsEveryAnnouncement, ghosts bool
	// freshSample means that a sample shows every lease as fresh.
	freshSample bool
	// dropLabels means that a write appears to succeed and changes no label.
	dropLabels bool
	// keepSlots means that a save that frees a slot appears to succeed and has no effect.
	keepSlots bool
	// askOnce means that the leaders' port calls mayStill only before the first key.
	askOnce bool
	// deafDrains do not notice their end, and blindDrains do not read the Node. provesAnything
	// means that each replacement is proven.
	deafDrains, blindDrains, provesAnything, forgetOrphans bool
	// noneNeeded means that the provider reports that no machine is needed as soon as the old one
	// is gone.
	noneNeeded bool
	// forgetGPUs means that a saved ledger has no numbers of GPUs.
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
		begun: map[string][]time.Time{}, finished: map[string]time.Time{}, cured: map[string]curedAt{}, breakGlassSince: map[string]time.Time{}, cancelled: map[string]time.Time{}, of: map[string]string{}, unfounded: map[string]time.Time{}, uncordoned: map[string]time.Time{}, born: map[string]time.Time{}, replacing: map[string]string{},
		recycling: recycling{nodeGoes: 30 * time.Second, joins: 2 * time.Minute}, promisesNone: c.PromisesNone("replace", &remediations.Intent{}), rv: 100, roundTrip: 10 * time.Millisecond, pollEvery: 15 * time.Second,
		editedAt: time.Now(), nonsense: []string{"ghost", "N0; reboot", "../n0"},
	}
	w.core.stood = w.stood
	for i := range nodes {
		w.join(fmt.Sprintf("n%d", i), "civo://m"+strconv.Itoa(i))
	}
	for i := range w.events {
		w.events[i].at = w.events[i].at.Add(-time.Hour) // a cache knows what happened a moment before the history begins
	}
	return w
}

// stood compares a decision that was used again with the one that would be made now.
func (w *world) stood(s *lifecycle.State, d lifecycle.Decision, now time.Time) {
	fresh := node.Decide(s, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stands++
	if !reflect.DeepEqual(fresh, d) {
		w.fail("the decision about %s stands as %s %s: %s; made again it is %s %s: %s", s.Node.Name, d.Verb, d.Reason, d.Message, fresh.Verb, fresh.Reason, fresh.Message)
	}
}

// fail keeps the first violation, and ends all processes. After every step, a test checks whether
// there is one. The caller has locked the world.
func (w *world) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = time.Now().UTC().Format("15:04:05") + " " + fmt.Sprintf(format, args...)
	}
	w.endAll() // a broken engine may loop for ever
}

// edit changes the Node in the API server.
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

// revise raises the store's revision. Leases are renewed all the time, and each renewal raises the
// revision.
func (w *world) revise() {
	w.rv += 1 + int(time.Since(w.editedAt)/time.Second)
	w.editedAt = time.Now()
}

// notice notifies the engines now, and again when the last of their caches has caught up.
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

// hold and unhold are a person's pause, exclusion or break-glass.
func (w *world) hold(name string, change func(*corev1.Node)) {
	if w.nodes[name] == nil {
		return
	}
	if _, held := w.paused[name]; !held {
		w.paused[name] = time.Now()
	}
	w.edit(name, change)
	w.judge()
}

// breakGlass holds the node for an hour.
func (w *world) breakGlass(name string) {
	if w.nodes[name] != nil {
		w.breakGlassSince[name] = time.Now()
		w.hold(name, edit(remediations.BreakGlassKey, "why, at "+time.Now().String()))
	}
}

// breakGlassRemoved runs when Drydock removes the break-glass key, and checks that its hour has
// passed.
func (w *world) breakGlassRemoved(n *corev1.Node) {
	if since := w.breakGlassSince[n.Name]; time.Since(since)+truncated < time.Hour {
		w.fail("9: break-glass of %s was removed %s after it was set", n.Name, time.Since(since))
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
	w.judge()
}

// toldSuperseded reports whether an Event was sent about a repair of the node that ended because
// its Node or its record was removed.
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

// book returns the stored ledger. It is nil if there is none, or if it is unreadable.
func (w *world) book() *ledger.Ledger {
	l, err := ledger.Decode(w.ledger)
	if err != nil {
		return nil
	}
	return l
}
