package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// recycling is how the provider replaces machines.
type recycling struct {
	// nodeGoes is how long the old machine's Node outlives the machine. joins is after what time
	// the new machine's Node joins, and zero if it never does.
	nodeGoes, joins time.Duration
	// oldName means that the new machine's Node has the old one's name.
	oldName bool
}

// off is how long a machine still runs after the request to remove it.
const off = 10 * time.Second

// Survey returns what the provider knows of the machine.
func (r provider) Survey(ctx context.Context, m Machine) remediations.Survey {
	r.enter("survey", false)
	mood := at(r.w, func() providerMood { return r.w.mood })
	select {
	case <-time.After(mood.survey):
	case <-ctx.Done():
		mood = providerMood{trouble: outageSays, fleetwide: true, unreached: true}
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	s := r.w.survey(mood, r.step, m)
	r.w.answers[m.Node] = append(r.w.answers[m.Node], answerGiven{at: time.Now(), by: r.instance, alone: s.Alone()})
	return s
}

func (w *world) survey(mood providerMood, step string, m Machine) remediations.Survey {
	x := w.machines[m.Node]
	switch {
	case mood.trouble != "" && mood.unreached:
		return remediations.Survey{Trouble: mood.trouble, Again: remediations.AskPassing, Fleetwide: mood.fleetwide, Unreached: true}
	case mood.trouble != "":
		return remediations.Survey{Trouble: mood.trouble, Again: 5 * time.Minute, Fleetwide: mood.fleetwide}
	case w.mute == m.Node:
		return remediations.Survey{Trouble: muteSays, Again: remediations.AskPassing, Unreached: true}
	case x == nil || x.providerID != m.ProviderID || !x.recycled.IsZero():
		return remediations.Survey{Trouble: "the provider has no such machine", Again: 5 * time.Minute}
	case step != "replace" && step != "powerOff":
		return remediations.Survey{}
	}
	return remediations.Keeping(before{Instance: m.ProviderID, Newest: time.Now()})
}

// before is what the world's providers return for the record before an intent: the machine and when
// the newest one was created, or the pod and its node.
type before struct {
	Instance, Hostname string
	Newest             time.Time
}

func beforeOf(b remediations.Before) (out before) {
	if err := b.Read(&out); err != nil {
		panic(err)
	}
	return out
}

// replacer replaces machines, and reports the progress.
type replacer struct{ provider }

func (r replacer) Replaced(_ context.Context, kept remediations.Before) (remediations.Replacement, error) {
	b := beforeOf(kept)
	r.enter("replaced", false)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.mood.cut {
		return remediations.Replacement{}, errors.New("connection reset")
	}
	answer := remediations.Replacement{MachineGone: r.w.off(b.Instance), Successors: r.w.bornAfter(b.Newest)}
	if r.w.lies.provesAnything {
		return remediations.Replacement{MachineGone: true, Successors: []string{b.Instance}}, nil
	}
	switch {
	case !answer.MachineGone:
		answer.Missing = "the old instance is still there"
	case len(answer.Successors) > 0:
	case r.w.lies.noneNeeded, r.w.promisesNone && !r.w.waits:
		answer.NoneNeeded = true
	default:
		answer.Missing = "there is no new instance"
	}
	return answer, nil
}

// powerPort switches machines off, and reports whether they are off.
type powerPort struct{ provider }

func (r powerPort) PoweredOff(ctx context.Context, kept remediations.Before) (missing string, err error) {
	b := beforeOf(kept)
	r.enter("poweredOff", false)
	if at(r.w, func() bool { return r.w.hangs }) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	switch {
	case r.w.mood.cut:
		return "", errors.New("connection reset")
	case r.w.lies.provesAnything:
		return "", nil
	}
	for _, m := range r.w.machines {
		if m.providerID == b.Instance && m.offSince.IsZero() {
			return "the machine is on", nil
		}
	}
	return "", nil
}

// wait sets whether a pod waits for a machine from now on.
func (w *world) wait(waits bool) {
	if w.waits && !waits {
		w.waited = time.Now()
	}
	w.waits = waits
}

// checkNoneNeeded checks invariant 7 for a replacement without a new machine: the provider promised
// none, and for some time nothing has needed one.
func (w *world) checkNoneNeeded(i *instance, e Event) {
	const says = "7: Recovered without a machine, and "
	machine := ""
	for providerID, repair := range w.replacing {
		if repair == e.Action {
			machine = providerID
		}
	}
	for _, o := range w.lostOrphans { // the end may come at the time when the ledger is deleted
		if machine == "" && o.Record.ID == e.Action {
			machine = o.Record.Intent.ProviderID
		}
	}
	switch {
	case machine == "":
		w.fail(says+"none was replaced by %s", e.Action)
	case !w.off(machine):
		w.fail(says+"%s is there", machine)
	case slices.ContainsFunc(slices.Collect(maps.Values(w.nodes)), func(n *corev1.Node) bool { return n.Spec.ProviderID == machine }):
		w.fail(says+"a Node of %s is there", machine)
	case !w.promisesNone:
		w.fail(says + "the provider promises one")
	case w.waits:
		w.fail(says + "a pod waits for one")
	case time.Since(w.waited) < 45*time.Second:
		w.fail(says+"a pod waited for one %s ago", time.Since(w.waited))
	case e.Of.Fingerprint != "" && !w.seenGone(i, e.Of.Fingerprint):
		w.fail(says + "nobody said that its alert is gone")
	}
}

// off reports whether the machine is certainly gone.
func (w *world) off(providerID string) bool {
	for _, m := range w.machines {
		if m.providerID == providerID && (m.recycled.IsZero() || time.Since(m.recycled) < off) {
			return false
		}
	}
	return true
}

func (w *world) bornAfter(then time.Time) (out []string) {
	for providerID, at := range w.born {
		if at.After(then) {
			out = append(out, providerID)
		}
	}
	return out
}

// recycle takes the machine away, and brings another one.
func (w *world) recycle(name, providerID string) {
	m := w.machines[name]
	if m == nil || m.providerID != providerID || !m.recycled.IsZero() {
		return
	}
	how := w.recycling
	if m.well() {
		m.since = time.Now()
	}
	m.up, m.recycled = false, time.Now()
	m.booting++
	w.report(m)
	goes := func() {
		if w.machines[name] == m {
			w.leave(name)
		}
	}
	if how.nodeGoes > 0 {
		w.in(how.nodeGoes, goes)
	}
	if how.joins == 0 {
		return
	}
	w.recycled++
	i, _ := strconv.Atoi(name[1:])
	next, id := "n"+strconv.Itoa(i+60), "civo://m"+strconv.Itoa(100+w.recycled)
	if how.oldName {
		next = name
	}
	w.in(how.joins-time.Second, func() { w.born[id] = time.Now() })
	w.in(how.joins, func() {
		if next == name {
			goes() // only one Node can have a name
		}
		if w.nodes[next] == nil {
			w.join(next, id)
		}
	})
}

func (w *world) in(d time.Duration, f func()) {
	time.AfterFunc(d, func() { w.do(f) })
}

// loseLedger is a person who deletes the ledger. It is created again from the Nodes. If a machine's
// Node was also registered again, nothing shows any more which repairs began on the machine. Both
// together are outside of the promises.
func (w *world) loseLedger() {
	if l := w.book(); l != nil {
		w.lostOrphans = append(w.lostOrphans, l.Orphans...) // the process that led then still knows them
	}
	w.ledger = nil
	clear(w.replacing)
	w.forgetMoves()
	w.forgetWide()
	for _, m := range w.machines {
		if m.registered {
			delete(w.begun, m.providerID)
		}
	}
}

// forgetWide forgets which repair changed the whole cluster, if neither the ledger nor a Node shows
// it any more. Another repair may name it in a message, but only people read that.
func (w *world) forgetWide() {
	for _, n := range w.nodes {
		j := modelRegistry.ReadJournal(n)
		if (j.Record != nil && j.Record.ID == w.wide.Repair) || slices.ContainsFunc(j.History, func(e remediations.Entry) bool { return e.ID == w.wide.Repair }) {
			return
		}
	}
	if w.ledger == nil {
		w.wide = ledger.Begun{}
	}
}

// register deletes the machine's Node and registers it again: another Node of the same machine.
func (w *world) register(name string) {
	m := w.machines[name]
	if m == nil {
		return
	}
	w.leave(name)
	w.join(name, m.providerID)
	w.machines[name], m.registered, m.marked, m.markedBoot = m, true, time.Time{}, ""
	if w.ledger == nil {
		delete(w.begun, m.providerID)
	}
	w.report(m)
}

// checkMark checks the out-of-service taint. By invariant 8 it is set only if the machine is gone
// or was switched off, and only until the machine has booted. By invariant 1 it is never set in
// observe mode, and by invariant 9 never against a person's request. The write is checked against
// the Node as it is.
func (w *world) checkMark(i *instance, cur *corev1.Node, c NodeChange) {
	name, m := cur.Name, w.machines[cur.Name]
	ended := "" // the boot that the step has ended, if it only switches the machine off
	if c.OutOfService != nil {
		r := modelRegistry.ReadJournal(cur).Record
		if r != nil && r.Step.Name == "powerOff" {
			ended = r.Intent.BootID
		}
		switch since, held := w.paused[name]; {
		case held:
			w.fail("9: %s is marked out of service, held since %s", name, since)
		case r != nil && !i.enforces(r.Policy):
			w.fail("1: %s is marked out of service in observe mode", name)
		case r != nil && r.Step.Name != "replace" && r.Step.Name != "powerOff":
			w.fail("8: %s is marked out of service by the step %s", name, r.Step.Name)
		case i.config.HoldWhen.Leaving(cur, i.config.Registry.ReadJournal(cur), time.Now().Add(i.offset)) != "":
			w.fail("NodeLeaving: %s is marked out of service, and it is being taken away", name)
		}
	}
	switch {
	case c.OutOfService != nil && ended == "" && !w.off(m.providerID):
		w.fail("8: %s is marked out of service, and its machine is there", name)
	case c.OutOfService != nil && ended != "" && !m.wasOff():
		w.fail("8: %s is marked out of service, and its machine is not off", name)
	case c.InService != nil && m.markedBoot != "" && (!remediations.Ready(cur) || cur.Status.NodeInfo.BootID == m.markedBoot):
		w.fail("8: took the mark off %s, and its machine has not booted since", name)
	case c.OutOfService != nil && (c.Annotations[remediations.NodeRepairKey] == nil || !m.marked.IsZero()):
		w.fail("8: %s is marked out of service, and its record does not say so", name)
	case c.InService != nil && !c.InService.Equal(m.marked) && hasMark(cur, *c.InService): // two repairs may have left one mark, and the second finds none
		w.fail("8: took a mark off %s that is not Drydock's", name)
	}
	if c.OutOfService != nil {
		m.marked, m.markedBoot = *c.OutOfService, ended
	}
	if c.InService != nil {
		m.marked, m.markedBoot = time.Time{}, ""
	}
}

// hasMark reports whether the Node has an out-of-service mark of that time.
func hasMark(n *corev1.Node, at time.Time) bool {
	return slices.ContainsFunc(n.Spec.Taints, remediations.Undo{Kind: remediations.UndoTaint, Key: remediations.OutOfServiceTaint, At: at}.Set)
}

// settled runs when a repair has ended, or waits for a person.
func (w *world) settled(repair string) {
	maps.DeleteFunc(w.replacing, func(_, id string) bool { return id == repair })
}

// unaccounted finds the replacements without a known end, long after they must have ended.
func (w *world) unaccounted() {
	for machine, id := range w.replacing {
		w.fail("7: the machine %s was replaced by %s, and nothing says how that ended", machine, id)
	}
}
