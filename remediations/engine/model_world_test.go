package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
)

// The model world is all that the engine touches, in memory: an API server with resourceVersions, a ledger, machines
// that break and boot, two Alertmanagers, a provider. It runs in a synctest bubble, so that its time is nobody's time.
// It checks what must always hold at every write and every call; see model_checks_test.go.

const (
	ready     = corev1.ConditionTrue
	gone      = corev1.ConditionUnknown
	alertTail = 20 * time.Second // an alert outlives its cause by the next scrape and evaluation
	leaseFor  = 40 * time.Second
)

// machine is what a Node stands for.
type machine struct {
	name, providerID string
	boots            int
	booting          int // which of its boots is under way; one that was overtaken comes to nothing
	up               bool
	// sick is how many reboots are needed to cure it; 0: it is well.
	sick                   int
	since                  time.Time // when its health last changed
	leaseFrozen            bool
	bootTakes              time.Duration
	cordonedBy             string
	silenced, inhibited    bool
	silencedHere           int // a silence that only this replica has heard of; 0: both
	unprocessed, unheardBy bool
}

func (m *machine) well() bool { return m.up && m.sick == 0 }

// nodeEvent is one change of a Node, as a watch tells it.
type nodeEvent struct {
	at   time.Time
	name string
	node *corev1.Node // nil: deleted
}

type replicaState struct{ dead, noWatchdog bool }

// providerMood is how the provider treats the next calls.
type providerMood struct {
	refuse, cut bool
	// before and after are how long it takes before and after the work is done.
	before, after time.Duration
}

type rebootCall struct {
	node, intent string
	at           time.Time
}

type world struct {
	mu     sync.Mutex
	config *remediations.Config

	rv       int
	nodes    map[string]*corev1.Node
	machines map[string]*machine
	events   []nodeEvent
	lag      int
	known    map[string]bool

	ledger   map[string]string
	ledgerRV int

	replicas   [2]replicaState
	lookTakes  time.Duration
	sourceDead bool
	blindBy    string
	looks      []lookAnswer

	mood   providerMood
	calls  []rebootCall
	faults map[string][]string // by operation: conflict, lost, written

	ids       int
	instances []*instance
	violation string
	told      []Event
	ended     []remediations.Entry
	paused    map[string]time.Time // since when a person holds the node
}

func newWorld(c *remediations.Config, nodes int) *world {
	w := &world{
		config: c, nodes: map[string]*corev1.Node{}, machines: map[string]*machine{}, faults: map[string][]string{},
		known: map[string]bool{}, paused: map[string]time.Time{}, rv: 100,
	}
	for i := range nodes {
		w.join(fmt.Sprintf("n%d", i), "civo://m"+strconv.Itoa(i))
	}
	return w
}

// fail keeps the first thing that must never be. It is asked for after every step.
func (w *world) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = time.Now().UTC().Format("15:04:05") + " " + fmt.Sprintf(format, args...)
	}
}

// join registers a machine as a new Node.
func (w *world) join(name, providerID string) {
	w.ids++
	m := &machine{name: name, providerID: providerID, boots: 1, up: true, since: time.Now().Add(-time.Hour), bootTakes: time.Minute}
	w.machines[name], w.known[name] = m, true
	w.nodes[name] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(fmt.Sprintf("uid-%d", w.ids)), CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
			Labels: map[string]string{"zone": "z" + name[len(name)-1:]}, Annotations: map[string]string{},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID},
	}
	w.report(m)
}

// leave deletes the Node; its machine goes with it.
func (w *world) leave(name string) {
	delete(w.nodes, name)
	delete(w.machines, name)
	delete(w.paused, name)
	w.events = append(w.events, nodeEvent{at: time.Now(), name: name})
	w.notice()
}

// edit changes the Node as the API server has it.
func (w *world) edit(name string, change func(*corev1.Node)) {
	n := w.nodes[name]
	if n == nil {
		return
	}
	n = n.DeepCopy()
	change(n)
	w.rv++
	n.ResourceVersion = strconv.Itoa(w.rv)
	w.nodes[name] = n
	w.events = append(w.events, nodeEvent{at: time.Now(), name: name, node: n})
	w.notice()
}

func (w *world) notice() {
	for _, i := range w.instances {
		if !i.dead {
			i.engine.Notice()
		}
	}
}

// report puts the machine's health on its Node, as the kubelet and the node controller do.
func (w *world) report(m *machine) {
	w.edit(m.name, func(n *corev1.Node) {
		status := gone
		if m.well() {
			status = ready
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		n.Status.NodeInfo.BootID = fmt.Sprintf("%s-boot%d", m.name, m.boots)
	})
}

// ail makes the machine sick until it has been rebooted so many times.
func (w *world) ail(name string, reboots int) {
	if m := w.machines[name]; m != nil && m.well() {
		m.sick, m.since = reboots, time.Now()
		w.report(m)
	}
}

// heal makes the machine well without a reboot.
func (w *world) heal(name string) {
	if m := w.machines[name]; m != nil && !m.well() {
		m.sick, m.up, m.since, m.booting = 0, true, time.Now(), m.booting+1
		w.report(m)
	}
}

// reboot takes the machine down; it comes back with a new boot ID.
func (w *world) reboot(name string) {
	m := w.machines[name]
	if m == nil {
		return
	}
	if m.well() {
		m.since = time.Now()
	}
	m.up = false
	m.boots++
	m.booting++
	booting := m.booting
	w.report(m)
	time.AfterFunc(m.bootTakes, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.machines[name] != m || m.booting != booting {
			return
		}
		m.up, m.sick = true, max(0, m.sick-1)
		if m.well() {
			m.since = time.Now()
		}
		w.report(m)
	})
}

// labelsOf are those of the machine's alert.
func labelsOf(node string) map[string]string {
	return map[string]string{"alertname": "NodeNotReady", "node": node, "remediation": "node-not-ready"}
}

func (m *machine) firing() bool { return !m.well() || time.Since(m.since) < alertTail && m.boots > 1 }

// answer is what one Alertmanager says now.
func (w *world) answer(i int) remediations.ReplicaWord {
	url := "http://alertmanager-" + strconv.Itoa(i)
	r := w.replicas[i]
	if r.dead {
		return remediations.ReplicaWord{URL: url, Err: fmt.Errorf("connection refused")}
	}
	word := remediations.ReplicaWord{URL: url, Watchdog: !r.noWatchdog && !w.sourceDead, BlindBy: w.blindBy, Alerts: map[string]remediations.AlertWord{}}
	if w.sourceDead {
		return word
	}
	for _, nonsense := range []string{"ghost", "N0; reboot", "../n0"} {
		word.Alerts[remediations.Fingerprint(labelsOf(nonsense))] = remediations.AlertWord{Labels: labelsOf(nonsense), StartsAt: time.Now().Add(-time.Hour), Active: true}
	}
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[name]
		if !m.firing() || (m.unheardBy && i == 1) {
			continue
		}
		a := remediations.AlertWord{Labels: labelsOf(name), StartsAt: m.since}
		if m.silenced && (m.silencedHere == 0 || m.silencedHere == i+1) {
			a.SilencedBy = []string{"maintenance"}
		}
		if m.inhibited {
			a.InhibitedBy = []string{"ClusterDown"}
		}
		a.Active = len(a.SilencedBy)+len(a.InhibitedBy) == 0 && !m.unprocessed
		word.Alerts[remediations.Fingerprint(a.Labels)] = a
	}
	return word
}

// post brings the machine's alert to its Node, as the receiver does.
func (w *world) post(name, status string) {
	m := w.machines[name]
	if m == nil {
		return
	}
	a := w.config.NewAlert(w.config.Policies[0], labelsOf(name), status, m.since, time.Now())
	w.edit(name, func(n *corev1.Node) { n.Annotations[a.Key()] = a.Encode() })
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

func (w *world) unhold(name string) {
	delete(w.paused, name)
	w.edit(name, func(n *corev1.Node) {
		delete(n.Annotations, remediations.PauseKey)
		delete(n.Annotations, remediations.BreakGlassKey)
		delete(n.Labels, remediations.ExcludeLabel)
	})
}

func (w *world) record(name string) *remediations.Record {
	if n := w.nodes[name]; n != nil {
		return remediations.ReadJournal(n).Record
	}
	return nil
}
