package engine

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

func (l *life) alertmanagers() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"a silence comes or goes": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.silenced, m.silencedHere = !m.silenced, rapid.IntRange(0, 2).Draw(t, "here")
			}
		}),
		"an inhibition comes or goes": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.inhibited = !m.inhibited
			}
		}),
		"a replica has not heard, or not processed": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.unheardBy, m.unprocessed = rapid.Bool().Draw(t, "unheard"), rapid.Bool().Draw(t, "unprocessed")
			}
		}),
		"a replica dies, or lives, or loses the Watchdog, or starts empty": l.do(func(t *rapid.T, w *world) {
			w.replicas[rapid.IntRange(0, 1).Draw(t, "replica")] = replicaState{
				dead: rapid.Bool().Draw(t, "dead"), noWatchdog: rapid.Bool().Draw(t, "no Watchdog"), empty: rapid.Bool().Draw(t, "empty"),
			}
		}),
		"somebody posts an alert, or no more, that is routed elsewhere": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.forged = !m.forged
			}
		}),
		"the source says that an alert began an hour ago": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.backdated = !m.backdated
			}
		}),
		"the source of alerts dies or lives": l.do(func(_ *rapid.T, w *world) {
			if w.sourceDead {
				w.reviveSource()
			} else {
				w.killSource()
			}
		}),
		"kube-state-metrics goes or comes": l.do(func(t *rapid.T, w *world) {
			w.blindBy = rapid.SampledFrom([]string{"", "DrydockSourceDown"}).Draw(t, "by")
		}),
		"a look takes": l.do(func(t *rapid.T, w *world) {
			w.lookTakes = rapid.SampledFrom([]time.Duration{0, time.Second, 8 * time.Second, 20 * time.Second}).Draw(t, "time")
		}),
	}
}

func (l *life) people() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"a person holds the node": l.do(func(t *rapid.T, w *world) {
			w.hold(pick(t), rapid.SampledFrom([]func(*corev1.Node){
				edit(remediations.PauseKey, "true"), edit(remediations.PauseKey, "never mind"),
				func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" },
			}).Draw(t, "how"))
		}),
		"a person sets break-glass": l.do(func(t *rapid.T, w *world) { w.breakGlass(pick(t)) }),
		"a person asks for a repair": l.do(func(t *rapid.T, w *world) {
			w.edit(pick(t), edit(remediations.RequestKey, rapid.SampledFrom([]string{
				"reboot", "remediation/reboot", "policy/node-not-ready", "policy/kubelet-down", "policy/none", "drain", "replace", "do it",
			}).Draw(t, "request")))
		}),
		"a person cancels": l.do(func(t *rapid.T, w *world) {
			n, id := pick(t), rapid.SampledFrom([]string{"zzzzzz", "yes", ""}).Draw(t, "another id")
			if r := w.record(n); r != nil && rapid.IntRange(0, 4).Draw(t, "the right one") > 0 {
				id = r.ID
				w.cancelled[id] = time.Now()
			}
			if node := w.nodes[n]; node != nil && node.Annotations[remediations.CancelKey] != id {
				delete(w.cancelled, node.Annotations[remediations.CancelKey]) // overwritten before any Drydock read it
			}
			w.edit(n, edit(remediations.CancelKey, id))
		}),
		"a person lets go": l.do(func(t *rapid.T, w *world) { w.unhold(pick(t)) }),
		"a person resets":  l.do(func(t *rapid.T, w *world) { w.edit(pick(t), edit(remediations.ResetKey, "true")) }),
		"a person cordons or uncordons": l.do(func(t *rapid.T, w *world) {
			n, yes := pick(t), rapid.Bool().Draw(t, "cordon")
			if w.nodes[n] != nil {
				w.machines[n].cordonedBy = map[bool]string{true: "a person"}[yes]
				w.edit(n, func(n *corev1.Node) { n.Spec.Unschedulable = yes })
			}
		}),
		"a person tells the autoscaler": l.do(func(t *rapid.T, w *world) {
			n, yes := pick(t), rapid.Bool().Draw(t, "do not scale down")
			node := w.nodes[n]
			if node == nil {
				return
			}
			if _, there := node.Annotations[noScaleDown]; there && yes {
				return // the Node already shows it
			}
			delete(w.machines[n].announcedBy, noScaleDown)
			w.edit(n, func(n *corev1.Node) {
				if delete(n.Annotations, noScaleDown); yes {
					n.Annotations[noScaleDown] = "true"
				}
			})
		}),
		"another controller says that it is at work, or over": l.do(func(t *rapid.T, w *world) {
			status := rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "in progress")
			if n := pick(t); w.nodes[n] != nil {
				w.condition(n, others(corev1.NodeMaintenanceInProgress, status))
			}
		}),
		"a person spoils the record": l.do(func(t *rapid.T, w *world) {
			n := pick(t)
			r := w.record(n)
			if r == nil {
				return
			}
			was := w.nodes[n].Annotations[remediations.NodeRepairKey]
			w.edit(n, edit(remediations.NodeRepairKey, rapid.SampledFrom([]string{"{}", `{"v":2}`, ""}).Draw(t, "record")))
			if !r.Phase.InFlight() { // it has no slot: nothing but the record knew what it had set
				w.stripped(n, was)
			}
		}),
		"somebody writes the Nodes into files": l.do(func(_ *rapid.T, w *world) { l.files = w.snapshot() }),
		"somebody applies an old file of a Node": l.do(func(t *rapid.T, w *world) {
			if n := pick(t); w.nodes[n] != nil && l.files.nodes[n] != nil {
				w.putBackOwned(n, l.files)
			}
		}),
		"somebody deletes a key of Drydock": l.do(func(t *rapid.T, w *world) { w.dropOwned(pick(t), rapid.IntRange(0, 3).Draw(t, "key")) }),
		"a person approves": l.do(func(t *rapid.T, w *world) {
			n, id := pick(t), "r9999"
			if r := w.record(n); r != nil && rapid.IntRange(0, 4).Draw(t, "the right one") > 0 {
				id = r.ID
			}
			w.edit(n, edit(remediations.ApproveKey, id))
		}),
		"a post that is forged, late, or comes twice": l.do(func(t *rapid.T, w *world) {
			n, status := pick(t), rapid.SampledFrom([]string{remediations.StatusFiring, remediations.StatusResolved}).Draw(t, "status")
			w.postSince(n, status, time.Now().Add(-rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "as of")))
		}),
		"a person deletes the ledger": l.do(func(_ *rapid.T, w *world) { w.loseLedger() }),
		"a forged post":               l.do(func(t *rapid.T, w *world) { w.post(pick(t), remediations.StatusFiring) }),
		"somebody reboots":            l.do(func(t *rapid.T, w *world) { w.reboot(pick(t)) }),
	}
}

func (l *life) infrastructure() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"booting takes": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.bootTakes = rapid.SampledFrom([]time.Duration{5 * time.Second, time.Minute, 9 * time.Minute, 25 * time.Minute}).Draw(t, "time")
			}
		}),
		"a lease freezes or thaws": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.leaseFrozen = toggled(m.leaseFrozen)
			}
		}),
		"all leases freeze or thaw": l.do(func(_ *rapid.T, w *world) { w.leasesFrozen = toggled(w.leasesFrozen) }),
		"a node says nothing of itself": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil && !m.mute {
				m.mute, m.sick, m.since = true, max(m.sick, 1), time.Now()
				w.report(m)
			}
		}),
		"a second alert": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.second, m.kubelet = !m.second, rapid.Bool().Draw(t, "the kubelet is all that is sick")
			}
		}),
		"the provider's mood": l.do(func(t *rapid.T, w *world) {
			w.mood = rapid.SampledFrom([]providerMood{
				{}, {}, {}, {refuse: true}, {later: true}, {unread: true}, {cut: true}, {idle: true}, {before: 8 * time.Second}, {before: 12 * time.Second}, {after: 20 * time.Second}, {after: time.Hour},
				{after: time.Minute, late: true}, {trouble: "there are two of that name"}, {trouble: "the network is unknown", fleetwide: true}, {trouble: outageSays, fleetwide: true, unreached: true}, {survey: 20 * time.Second},
			}).Draw(t, "mood")
			w.mood.account = rapid.IntRange(0, 9).Draw(t, "the account") == 0
		}),
		"the controller of one machine is odd, or none is": l.do(func(t *rapid.T, w *world) {
			err := rapid.SampledFrom([]error{nil, ErrAccount, ErrPassing, ErrLater, errors.New("no such machine"), ofMachine{ErrPassing}, ofMachine{ErrLater}}).Draw(t, "what it answers")
			w.odd = map[string]error{pick(t): err}
			w.mute = rapid.SampledFrom([]string{"", pick(t)}).Draw(t, "answers no question")
		}),
		"a machine is full, or a budget blocks its pods, or they do not end": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				how := rapid.SampledFrom([]string{"well", "well", "blocked", "forever", "refused"}).Draw(t, "how they go")
				m.pods = podsOf{rapid.SampledFrom([]int{0, 9, 200}).Draw(t, "pods"), how == "blocked", how == "forever", how == "refused"}
			}
		}),
		"recycling takes": l.do(func(t *rapid.T, w *world) {
			w.recycling = recycling{
				nodeGoes: rapid.SampledFrom([]time.Duration{5 * time.Second, time.Minute, 0}).Draw(t, "the Node"),
				joins:    rapid.SampledFrom([]time.Duration{15 * time.Second, 2 * time.Minute, 9 * time.Minute, 0}).Draw(t, "the new one"),
				oldName:  rapid.Bool().Draw(t, "the old name"),
			}
		}),
		"switching off takes": l.do(func(t *rapid.T, w *world) {
			w.powerTakes = rapid.SampledFrom([]time.Duration{0, 10 * time.Second, 2 * time.Minute}).Draw(t, "time")
		}),
		"a person switches a machine on, which does not cure it": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil && !m.offSince.IsZero() {
				w.reboot(m.name)
			}
		}),
		"a pod waits for a machine, or none does": l.do(func(t *rapid.T, w *world) { w.wait(rapid.Bool().Draw(t, "waits")) }),
		"an autoscaler takes the node away, or not": l.do(func(t *rapid.T, w *world) {
			leaves := rapid.Bool().Draw(t, "leaves")
			w.edit(pick(t), func(n *corev1.Node) { w.leaving(n, leaves) })
		}),
		"a Node is deleted and registered again": l.do(func(t *rapid.T, w *world) { w.register(pick(t)) }),
		"a Node is made again with all that it carried": l.do(func(t *rapid.T, w *world) {
			n := pick(t)
			if m := w.machines[n]; m != nil && m.recycled.IsZero() {
				w.ids++
				w.remake(n, rapid.SampledFrom([]string{m.providerID, fmt.Sprintf("civo://other-%d", w.ids)}).Draw(t, "machine"))
			}
		}),
		"a write or a read is lost": l.do(func(t *rapid.T, w *world) {
			op := rapid.SampledFrom([]string{"write", "save", "load", "nodes", "node", "lease", "leases", "heartbeats"}).Draw(t, "operation")
			w.faults[op] = rapid.SliceOfN(rapid.SampledFrom([]string{"conflict", "lost", "written", "empty"}), 1, 3).Draw(t, "faults")
		}),
		"the cache falls behind": l.do(func(t *rapid.T, w *world) { w.lag = rapid.IntRange(0, 6).Draw(t, "events") }),
		"a Node goes, and comes": l.do(func(t *rapid.T, w *world) {
			n := pick(t)
			if w.nodes[n] != nil {
				w.leave(n)
			} else {
				w.join(n, "civo://again-"+n)
			}
		}),
	}
}

func (l *life) processes() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"the process dies": func(t *rapid.T) {
			l.w.do(func() {
				for _, i := range l.w.instances {
					i.dead = true
				}
			})
			l.w.pass(rapid.SampledFrom([]time.Duration{15 * time.Second, 5 * time.Minute}).Draw(t, "until another leads"))
			l.w.do(func() { l.restless = time.Now().Add(time.Minute) })
			l.w.startWith(l.w.last().config, l.w.last().offset)
		},
		"the process will die at a step": l.do(func(t *rapid.T, w *world) {
			i := w.instances[len(w.instances)-1]
			i.crashAt, i.crashAfter = i.changes+rapid.IntRange(1, 4).Draw(t, "step"), rapid.Bool().Draw(t, "after")
		}),
		"the process is asleep, and another leads": func(t *rapid.T) {
			l.w.do(func() {
				i := l.w.instances[len(l.w.instances)-1]
				i.stall = rapid.SampledFrom([]time.Duration{16 * time.Second, 40 * time.Second, 5 * time.Minute}).Draw(t, "for")
				l.w.in(i.stall+2*time.Second, i.cancel) // after it wakes, it soon learns that it has lost leadership
			})
			l.w.pass(16 * time.Second)
			l.w.startWith(l.w.last().config, l.w.last().offset)
		},
		"it stops in good order":                                  func(*rapid.T) { l.follow(l.w.last().config, 0) },
		"somebody plants a sidecar's record while nobody leads":   l.plants(l.plantsSidecar),
		"somebody plants a node's record while nobody leads":      l.plants(l.plantsNode),
		"somebody plants the record of a move while nobody leads": l.plants(l.plantsMove),
		"another configuration":                                   func(t *rapid.T) { l.follow(otherConfig(t, l.w.config), 0) },
		"a clock that is wrong": func(t *rapid.T) {
			if at(l.w, func() bool { return l.w.ledger == nil }) {
				return // a ledger rebuilt by a clock far ahead loses what began: two accidents at once, see docs/reference/safety.md
			}
			l.follow(l.w.last().config, rapid.SampledFrom([]time.Duration{-25 * time.Hour, -2 * time.Hour, 2 * time.Hour, 25 * time.Hour}).Draw(t, "by"))
			l.w.pass(rapid.SampledFrom([]time.Duration{time.Minute, 12 * time.Minute}).Draw(t, "until it is set right"))
			l.follow(l.w.last().config, 0)
		},
	}
}
