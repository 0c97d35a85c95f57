package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
)

// machine is the machine behind a Node.
type machine struct {
	name, providerID string
	boots            int
	booting          int // the number of the boot that is under way; an overtaken boot has no effect
	up               bool
	// bootID is the boot ID that its Node reports in place of its own. If it is nil, the Node
	// reports the machine's own.
	bootID *string
	// sick is how many reboots cure the machine. 0 means that it is healthy. kubelet means that a
	// restart of the kubelet cures it, too.
	sick    int
	kubelet bool
	// broken is how many reboots repair a fault that the kubelet does not report: the node stays
	// Ready, and its condition Broken is True. lapsed means that its alert does not fire despite a
	// fault, for example while its rule starts again.
	broken int
	lapsed bool
	since  time.Time // when its health last changed
	// wellSince is when it last became healthy after a fault that lasted long enough to be noticed.
	wellSince time.Time
	// readySince is when its node last became Ready, whatever else was wrong with it.
	readySince time.Time
	// mute means that it reports no Ready condition. stuck means that its alert continues although
	// it is healthy. second means that an alert of the milder policy also fires while it is not
	// healthy.
	mute, stuck, second bool
	// forged means that an attacker posts alerts about it into Alertmanager's own API.
	forged bool
	// backdated means that its alert claims to have begun an hour earlier.
	backdated              bool
	leaseFrozen            time.Time // since when its kubelet renews no lease; zero if it renews the lease
	bootTakes              time.Duration
	cordonedBy             string
	stripped               bool
	announcedBy            map[string]string
	silenced, inhibited    bool
	silencedHere           int // a silence that only this replica knows; 0 if both know it
	unprocessed, unheardBy bool
	pods                   podsOf
	podRestarts            int // of the node's own pod of a DaemonSet
	// unmonitored is since when nothing confirms its condition Broken. It is zero while its monitor
	// does. relatches is how long after each boot the condition comes back, and zero if it does
	// not. gpus are the GPUs that it finds. gpusBack means that its next boot finds all of them.
	unmonitored time.Time
	relatches   time.Duration
	gpus        int
	gpusBack    bool
	// recycled is when the provider took it away. marked is the time of Drydock's out-of-service
	// taint. Each is zero if that has not happened.
	recycled, marked time.Time
	registered       bool // again, as another Node
	// offSince is since when its power is off, and onSince when it was last switched on. Each is
	// zero if that does not apply. markedBoot is the boot that ended when Drydock switched it off
	// and set the taint. It is empty if Drydock did not.
	offSince, onSince time.Time
	markedBoot        string
	// offBy is the attempt that switched it off.
	offBy string
}

func (m *machine) well() bool { return m.up && m.sick == 0 }

// faulty reports whether the machine has a fault, whether or not anything shows it.
func (m *machine) faulty() bool { return !m.well() || m.broken > 0 }

func (m *machine) firing() bool {
	if m.lapsed {
		return false
	}
	return m.stuck || m.broken > 0 || !m.well() || time.Since(m.since) < alertTail && m.boots > 1
}

// renewed is when the kubelet renewed its lease, by the correct clock.
func (w *world) renewed(m *machine) time.Time {
	at := time.Now()
	if !m.well() {
		at = m.since
	}
	for _, frozen := range []time.Time{m.leaseFrozen, w.leasesFrozen} {
		if !frozen.IsZero() && frozen.Before(at) {
			at = frozen
		}
	}
	return at
}

// layout is how the machines are laid out. Machine i is in zone i mod zones, and in pool i mod
// pools.
type layout struct{ zones, pools, controlPlane int }

// join registers a machine as a new Node.
func (w *world) join(name, providerID string) {
	w.ids++
	m := &machine{name: name, providerID: providerID, boots: 1, up: true, since: time.Now().Add(-time.Hour), wellSince: time.Now().Add(-time.Hour), readySince: time.Now().Add(-time.Hour), bootTakes: time.Minute, pods: podsOf{left: 2}, gpus: fullGPUs, announcedBy: map[string]string{}}
	w.machines[name], w.known[name] = m, true
	i, _ := strconv.Atoi(name[1:])
	labels := map[string]string{"zone": "z" + strconv.Itoa(i%w.layout.zones), "pool": "p" + strconv.Itoa(i%w.layout.pools)}
	if i < w.layout.controlPlane {
		labels["node-role.kubernetes.io/control-plane"] = ""
	}
	w.nodes[name] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(fmt.Sprintf("uid-%d", w.ids)), CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
			Labels: labels, Annotations: map[string]string{},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID},
	}
	w.report(m)
	w.enroll(name)
}

// leave deletes the Node, and its machine with it.
func (w *world) leave(name string) {
	delete(w.nodes, name)
	delete(w.machines, name)
	delete(w.paused, name)
	// Its history is deleted with it, whatever names its policies have now.
	maps.DeleteFunc(w.finished, func(key string, _ time.Time) bool { return strings.HasPrefix(key, name+"/") })
	w.events = append(w.events, nodeEvent{at: time.Now(), name: name})
	w.reschedule(name)
	w.expel(name)
	w.forgetWide()
	w.judge()
	w.notice()
}

// report updates the Node with the machine's health, as the kubelet and the node controller do.
func (w *world) report(m *machine) {
	w.edit(m.name, func(n *corev1.Node) {
		status := gone
		if m.well() {
			status = ready
		}
		if was := remediations.ReadyCondition(n); m.well() && !m.mute && (was == nil || was.Status != ready) {
			m.readySince = time.Now()
		}
		n.Status.Conditions = slices.DeleteFunc(slices.Clone(n.Status.Conditions), func(c corev1.NodeCondition) bool {
			return !slices.Contains(announce.Conditions, c.Type) // no kubelet changes these conditions
		})
		if !m.mute {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: status})
		}
		mended := gone // unknown while the machine is away
		switch {
		case m.broken > 0 && m.up:
			mended = ready
		case m.up:
			mended = corev1.ConditionFalse
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: conditionBroken, Status: mended})
		setBroken(n, m)
		w.showGPUs(n, m)
		n.Status.NodeInfo.BootID = fmt.Sprintf("%s-boot%d", m.name, m.boots)
		if m.bootID != nil {
			n.Status.NodeInfo.BootID = *m.bootID
		}
	})
	w.witness(m.name)
	w.judge()
}

// conditionBroken is the condition that shows a broken machine.
const conditionBroken = "Broken"

// breakDown breaks the machine until it has been rebooted that many times. Its node stays Ready.
func (w *world) breakDown(name string, reboots int) {
	if m := w.machines[name]; m != nil && !m.faulty() {
		m.broken, m.since = reboots, time.Now()
		w.report(m)
	}
}

// ail makes the machine sick until it has been rebooted that many times.
func (w *world) ail(name string, reboots int) {
	if m := w.machines[name]; m != nil && m.well() {
		if !m.faulty() { // the alert of a broken machine continues to fire
			m.since = time.Now()
		}
		m.sick = reboots
		w.report(m)
	}
}

func (m *machine) recovered() {
	if time.Since(m.since) >= behind {
		m.wellSince = time.Now()
	}
	m.since = time.Now()
}

// heal makes the machine healthy without a reboot.
func (w *world) heal(name string) {
	if m := w.machines[name]; m != nil && m.recycled.IsZero() && (m.faulty() || m.mute || m.stuck || m.lapsed) {
		if m.faulty() || m.mute {
			m.recovered()
		}
		m.switchOn()
		m.broken, m.lapsed, m.since = 0, false, time.Now()
		m.sick, m.up, m.mute, m.stuck, m.booting = 0, true, false, false, m.booting+1
		w.report(m)
	}
}

// restartKubelet cures a machine without a boot if only its kubelet is sick.
func (w *world) restartKubelet(name string) {
	if m := w.machines[name]; m != nil && m.up && m.sick > 0 && m.kubelet {
		m.sick = 0
		m.recovered()
		w.report(m)
	}
}

// powerOff takes the machine down. It stays off until it is rebooted, or a person heals it.
func (w *world) powerOff(name, attempt string) {
	m := w.machines[name]
	if m == nil || !m.recycled.IsZero() || !m.offSince.IsZero() {
		return
	}
	if m.well() {
		m.since = time.Now()
	}
	w.closeOn(name)
	m.up, m.offSince, m.offBy = false, time.Now(), attempt
	m.booting++
	w.report(m)
}

// switchOn ends the time without power. What ran before it does not run any more.
func (m *machine) switchOn() {
	if !m.offSince.IsZero() {
		m.offSince, m.onSince = time.Time{}, time.Now()
		m.boots++
	}
}

// wasOff reports whether the machine is off, or was when a provider was last asked about it.
func (m *machine) wasOff() bool {
	return !m.offSince.IsZero() || time.Since(m.onSince) < 30*time.Second+behind
}

// reboot takes the machine down. It comes back with a new boot ID.
func (w *world) reboot(name string) {
	m := w.machines[name]
	if m == nil || !m.recycled.IsZero() {
		return
	}
	if m.well() {
		m.since = time.Now()
	}
	w.closeOn(name)
	m.switchOn()
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
		m.up, m.sick, m.broken = true, max(0, m.sick-1), max(0, m.broken-1)
		if !m.faulty() {
			m.recovered()
		}
		if m.gpusBack {
			m.gpus, m.gpusBack = fullGPUs, false
		}
		if m.relatches > 0 {
			w.relatch(m)
		}
		w.rewired(name)
		w.report(m)
	})
}
