package engine

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// snapshot is the state of the API server's store at one time, together with what the world knows
// about people and repairs only from the store.
type snapshot struct {
	at           time.Time
	nodes        map[string]*corev1.Node
	ledger       map[string]string
	rv, ledgerRV int

	owned                              map[string]ownership
	paused, breakGlassSince, cancelled map[string]time.Time
	finished                           map[string]time.Time
	begun                              map[string][]time.Time
	cured                              map[string]curedAt
	replacing                          map[string]string
	wide                               ledger.Begun
	moves                              map[string]map[string]time.Time
	approvals                          map[string][]time.Time
}

// ownership is who wrote what on a Node.
type ownership struct {
	cordonedBy  string
	announcedBy map[string]string
	marked      time.Time
	markedBoot  string
	stripped    bool
}

func (w *world) snapshot() snapshot {
	s := snapshot{
		at: time.Now(), nodes: maps.Clone(w.nodes), ledger: maps.Clone(w.ledger), rv: w.rv, ledgerRV: w.ledgerRV, owned: map[string]ownership{},
		paused: maps.Clone(w.paused), breakGlassSince: maps.Clone(w.breakGlassSince), cancelled: maps.Clone(w.cancelled), finished: maps.Clone(w.finished),
		cured: maps.Clone(w.cured), replacing: maps.Clone(w.replacing), wide: w.wide,
	}
	s.begun = cloned(w.begun)
	if w.mesh != nil {
		s.moves = map[string]map[string]time.Time{}
		for place, at := range w.mesh.begun {
			s.moves[place] = maps.Clone(at)
		}
	}
	if w.gates != nil {
		s.approvals = cloned(w.gates.intents)
	}
	for name, m := range w.machines {
		s.owned[name] = ownership{m.cordonedBy, maps.Clone(m.announcedBy), m.marked, m.markedBoot, m.stripped}
	}
	return s
}

// reportAfter is how long after a restore the kubelets report again. Until then each cache has the
// store's old state.
const reportAfter = 2 * behind

// wentBack is a store that went back to an older state.
type wentBack struct {
	// knew is the process that led and had a newer version of a Node than the store has now. It is
	// nil if there was no such process.
	knew *instance
	// until is when disruptive steps may begin again.
	until time.Time
}

// restore makes the store go back to the snapshot, including its versions, as etcd does. The
// machines stay as they are, and their kubelets report them a little later. A Node that registered
// since then registers again, and a Node that was deleted since then is deleted again.
func (w *world) restore(to snapshot) {
	w.knowsBetter(to)
	w.rewind(to)
	w.rv, w.ledgerRV, w.editedAt = to.rv, to.ledgerRV, time.Now()
	w.putAllBack(to, func(n *corev1.Node) *corev1.Node { return n })
}

// restoreAhead makes the store go back to the snapshot, and raises all versions above every known
// one, as etcdutl snapshot restore --bump-revision does.
func (w *world) restoreAhead(to snapshot) {
	w.knowsItsCalls(to)
	w.rewind(to)
	w.rv, w.ledgerRV = w.rv+1_000_000, w.ledgerRV+1_000_000
	w.putAllBack(to, func(n *corev1.Node) *corev1.Node {
		w.rv++
		n = n.DeepCopy()
		n.ResourceVersion = strconv.Itoa(w.rv)
		return n
	})
}

// knowsBetter notes the leader if its cache has a newer version of a Node than the snapshot.
func (w *world) knowsBetter(to snapshot) {
	for _, i := range w.instances {
		if i.dead || !i.cancelled.IsZero() || i.still || len(w.faults["nodes"]) > 0 || w.always["nodes"] != "" {
			continue
		}
		for name, n := range i.view {
			was, now := to.nodes[name], w.nodes[name]
			if was != nil && now != nil && was.UID == n.UID && now.UID == n.UID && olderVersion(was.ResourceVersion, n.ResourceVersion) {
				if w.back.knew != i || time.Now().After(w.back.until) {
					w.mustTell(i)
				}
				w.back = wentBack{i, time.Now().Add(i.config.LongestWait())}
				return
			}
		}
	}
}

// knowsItsCalls notes the leader if it recently made a call that the snapshot does not show.
func (w *world) knowsItsCalls(to snapshot) {
	book, err := ledger.Decode(to.ledger)
	i := w.instances[len(w.instances)-1]
	if err != nil || i.dead || !i.cancelled.IsZero() {
		return
	}
	for _, c := range w.calls {
		was, now := to.nodes[c.node], w.nodes[c.node]
		if c.by != i || c.lost || was == nil || now == nil || was.UID != now.UID || showsAttempt(book, was, c.intent) {
			continue
		}
		w.back = wentBack{i, c.at.Add(i.config.LongestWait())}
	}
}

// showsAttempt reports whether the ledger or the Node may show the attempt or what came after it.
func showsAttempt(book *ledger.Ledger, n *corev1.Node, attempt string) bool {
	repair, j := repairOf(attempt), modelRegistry.ReadJournal(n)
	r := j.UnderWay(repair)
	if r == nil {
		return book.Knows(repair) || j.Knows(repair)
	}
	this, _ := remediations.AttemptNamed(repair, attempt)
	last, issued := r.Issued()
	return slices.ContainsFunc(book.Slots, func(s ledger.Slot) bool { return s.Repair == repair }) || r.Withheld() || issued && (last.Index > this.Index || last.Index == this.Index && last.Attempt >= this.Attempt)
}

// mustTell: a process that knows that the store went back must report it, unless it dies or is
// suspended before that.
func (w *world) mustTell(i *instance) {
	told := func() int {
		return len(slices.DeleteFunc(slices.Clone(w.told), func(e Event) bool { return e.Reason != "StoreWentBack" || e.Action != "Held" }))
	}
	before, at := told(), time.Now()
	w.in(2*time.Minute, func() {
		if !i.dead && i.cancelled.IsZero() && i.asleepUntil.Before(at) && w.always["nodes"] == "" && told() == before {
			w.fail("StoreWentBack: nobody is told that the store went back at %s", at)
		}
	})
}

func (w *world) putAllBack(to snapshot, as func(*corev1.Node) *corev1.Node) {
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		was, now := to.nodes[name], w.nodes[name]
		if was == nil || was.UID != now.UID {
			w.register(name)
			continue
		}
		if now.Spec.Unschedulable && !was.Spec.Unschedulable {
			w.uncordoned[name] = time.Now()
		}
		n := as(was)
		w.nodes[name] = n
		w.events = append(w.events, nodeEvent{at: time.Now(), name: name, node: n})
		w.witness(name)
		m := w.machines[name]
		w.in(reportAfter, func() {
			if w.machines[name] == m {
				w.report(m)
			}
		})
	}
	w.judge()
	w.elect()
	w.notice()
}

func cloned(times map[string][]time.Time) map[string][]time.Time {
	all := make(map[string][]time.Time, len(times))
	for key, at := range times {
		all[key] = slices.Clone(at)
	}
	return all
}

// rewind forgets what only the store knew.
func (w *world) rewind(to snapshot) {
	for i := range w.calls {
		w.calls[i].lost = w.calls[i].lost || w.calls[i].at.After(to.at)
	}
	if w.mesh != nil {
		w.mesh.begun = map[string]map[string]time.Time{}
		for place, at := range to.moves {
			w.mesh.begun[place] = maps.Clone(at)
		}
		for place := range w.mesh.places {
			w.mesh.touched[place] = true
		}
		for i := range w.mesh.moved {
			w.mesh.moved[i].lost = w.mesh.moved[i].lost || w.mesh.moved[i].at.After(to.at)
		}
	}
	if w.gates != nil {
		w.gates.intents = cloned(to.approvals)
		for i := range w.gates.approvals {
			w.gates.approvals[i].lost = w.gates.approvals[i].lost || w.gates.approvals[i].at.After(to.at)
		}
	}
	w.ledger, w.paused, w.breakGlassSince, w.cancelled = maps.Clone(to.ledger), maps.Clone(to.paused), maps.Clone(to.breakGlassSince), maps.Clone(to.cancelled)
	w.finished, w.begun, w.cured, w.replacing, w.wide = maps.Clone(to.finished), cloned(to.begun), maps.Clone(to.cured), maps.Clone(to.replacing), to.wide
	for name, o := range to.owned {
		if m := w.machines[name]; m != nil {
			m.cordonedBy, m.announcedBy, m.marked, m.markedBoot, m.stripped = o.cordonedBy, maps.Clone(o.announcedBy), o.marked, o.markedBoot, o.stripped
		}
	}
}

// checkWentBack: after the store went back, no disruptive step may begin for as long as a step may
// take. The process with the newer version holds such steps, and so does every process that reads
// that in the ledger.
func (w *world) checkWentBack(i *instance, node, what string) {
	if now := time.Now(); i == w.back.knew && now.Add(truncated).Before(w.back.until) {
		w.fail("StoreWentBack: %s on %s, and nothing may begin before %s", what, node, w.back.until)
	} else if l := w.book(); l != nil && l.Status.WentBack != nil && now.Add(truncated).Before(l.Status.WentBack.Until) {
		w.fail("StoreWentBack: %s on %s, and the ledger lets nothing begin before %s", what, node, l.Status.WentBack.Until)
	}
}

// putBack overwrites the Node's annotations and labels with the old ones, as a person does who
// applies an old file.
func (w *world) putBack(name string, to snapshot) {
	w.edit(name, func(n *corev1.Node) {
		n.Annotations, n.Labels = maps.Clone(to.nodes[name].Annotations), maps.Clone(to.nodes[name].Labels)
	})
}

// putBackOwned restores Drydock's own keys of the Node, and removes those that it did not have. It
// leaves what people wrote.
func (w *world) putBackOwned(name string, to snapshot) {
	was := w.nodes[name].Annotations[remediations.NodeRepairKey]
	defer func() { w.stripped(name, was) }()
	w.edit(name, func(n *corev1.Node) {
		owned := func(key, _ string) bool { return remediations.Owned(key) }
		maps.DeleteFunc(n.Annotations, owned)
		for key, text := range to.nodes[name].Annotations {
			if remediations.Owned(key) {
				n.Annotations[key] = text
			}
		}
	})
}

// dropOwned removes one of Drydock's own keys from the Node, as a person does who cleans the Node
// by hand.
func (w *world) dropOwned(name string, which int) {
	n := w.nodes[name]
	if n == nil {
		return
	}
	var owned []string
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		if remediations.Owned(key) {
			owned = append(owned, key)
		}
	}
	if len(owned) > 0 {
		was := n.Annotations[remediations.NodeRepairKey]
		w.edit(name, func(n *corev1.Node) { delete(n.Annotations, owned[which%len(owned)]) })
		w.stripped(name, was)
	}
}

// stripped notes that another writer removed or replaced the node's record. That writer also takes
// over the cordon.
func (w *world) stripped(name, was string) {
	if was != "" && w.nodes[name].Annotations[remediations.NodeRepairKey] != was {
		w.machines[name].stripped = true
	}
}

// deny makes another admission policy refuse Drydock's keys on all Nodes.
func (w *world) deny() {
	w.writes = func() Writes { return Writes{Denied: "ValidatingAdmissionPolicy 'other' denied request"} }
}

// unknownKind is a kind of target that only a newer version of Drydock has.
const unknownKind remediations.Kind = "rack"

// leaveUnknown leaves a slot of an unknown kind, and its record on the Node, as a newer version
// does.
func (w *world) leaveUnknown(name string) {
	n, l := w.nodes[name], w.book()
	if n == nil || l == nil || w.ledger == nil || slices.ContainsFunc(l.Slots, isUnknown) {
		return
	}
	l.Slots = append(l.Slots, ledger.Slot{Kind: unknownKind, Node: name, UID: string(n.UID), Policy: "node-not-ready", Repair: "runknown", Attempt: "runknown-0-1", Since: time.Now()})
	w.ledgerRV++
	w.ledger = l.Encode()
	w.edit(name, edit(remediations.RepairPrefix+string(unknownKind), `{"v":1}`))
}

func isUnknown(s ledger.Slot) bool { return s.Kind == unknownKind }

// forgetUnknown is a person who goes back to the older version for good.
func (w *world) forgetUnknown() {
	l := w.book()
	if l == nil || !slices.ContainsFunc(l.Slots, isUnknown) {
		return
	}
	l.Slots = slices.DeleteFunc(l.Slots, isUnknown)
	w.ledgerRV++
	w.ledger = l.Encode()
}

// storeGoesBack restores an older state of the store. The leader survives, or a new leader without
// its knowledge follows at once.
func (l *life) storeGoesBack(t *rapid.T) {
	by := rapid.SampledFrom([]time.Duration{0, 10 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}).Draw(t, "by")
	ahead, dies := rapid.IntRange(0, 3).Draw(t, "its versions go forward") == 0, rapid.IntRange(0, 3).Draw(t, "the leader dies with it") == 0
	var to snapshot
	for _, s := range l.past {
		if to.nodes == nil || time.Since(s.at) >= by {
			to = s
		}
	}
	if to.nodes == nil {
		return
	}
	l.w.do(func() {
		for _, i := range l.w.instances {
			i.dead = i.dead || dies
		}
		if ahead {
			l.w.restoreAhead(to)
		} else {
			l.w.restore(to)
		}
	})
	if dies {
		l.w.pass(15 * time.Second)
		l.w.startWith(l.w.last().config, l.w.last().offset)
	}
	l.w.pass(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 5 * time.Minute}).Draw(t, "for"))
}
