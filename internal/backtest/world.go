package backtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/routing"
)

// leaseFor is how long a node's lease is valid: the kubelet's default.
const leaseFor = 40 * time.Second

// world implements the engine's interfaces in memory. It has the Nodes of the past, and what
// Drydock wrote on them in the replay.
type world struct {
	*simulation
	config *remediations.Config
	alerts *alertmanager
	ill    map[corev1.NodeConditionType]corev1.ConditionStatus
	cures  Cures
	// curing reports that each step cures its node in this replay.
	curing bool

	// nodes are sorted by name.
	nodes   []*corev1.Node
	node    map[string]*node
	unready int
	version int
	// touched are the names of the Nodes that were added, changed or removed since the engine's last
	// call of Changed.
	touched map[string]bool

	// about has the alerts that fire at the present simulated time, by fingerprint.
	about map[string]*firing

	ledger   map[string]string
	ledgerAt int
	coming   []coming
	story    *story
	// wrote, if not nil, is called for each write on a Node.
	wrote func(before, after *corev1.Node)
	// asked, if not nil, is called when the engine reads a sample of the nodes' leases. names are the
	// names of these nodes.
	asked func(names []string)
	// decided, if not nil, is called for each decision about a node.
	decided func(node string, d lifecycle.Decision)
}

// node is one Node of the past, with what changed on it in the replay.
type node struct {
	past, now *corev1.Node
	// annotations and labels are those that Drydock wrote. cordoned and tainted report that Drydock
	// cordoned or tainted the Node.
	annotations, labels map[string]string
	cordoned            bool
	tainted             *metav1.Time
	cured               *cured
	// boots is the number of boots that steps caused. machines is the number of replacements of the
	// machine.
	boots, machines int
	// firing has the fingerprint of each recorded alert that fires on the node at the present
	// simulated time.
	firing map[string]bool
}

// apply applies the changes of the past at one moment.
func (w *world) apply(m history.Moment) {
	for _, name := range m.Gone {
		w.remove(name)
	}
	for _, n := range m.Nodes {
		known := w.node[n.Name]
		fresh := known == nil || known.past.UID != n.UID
		if fresh {
			if known != nil {
				w.remove(n.Name)
			}
			known = &node{annotations: map[string]string{}, labels: map[string]string{}, firing: map[string]bool{}}
			w.node[n.Name] = known
		}
		known.past = n
		if w.compose(known); fresh {
			w.stillFiring(n.Name)
		}
	}
	for _, s := range m.Silences {
		w.alerts.silence(s)
	}
	for _, a := range m.Alerts {
		w.alert(a)
	}
}

// stillFiring is called for a newly registered Node. It assigns to the Node the alerts that name it
// and were already firing.
func (w *world) stillFiring(name string) {
	n := w.node[name]
	for fp, about := range w.about {
		if about.on == "" && w.nodeOf(about.labels) == name { // the Node did not exist when the alert began
			about.on = name
			w.story.fault(about, name, time.Time{})
		}
		if about.on != name {
			continue
		}
		n.firing[fp] = true
		if w.alerts.active[fp] == nil { // an earlier step cured this alert: until it ended in the past, it does not fire
			if n.cured == nil {
				n.cured = &cured{at: w.now, hidden: map[string]bool{}}
			}
			n.cured.hidden[fp] = true
		}
	}
	if n.cured != nil {
		w.compose(n)
	}
}

// remove deletes a Node. The hold of its repair ends, because the engine makes no more decisions
// about the node. A repair that issued no step ends, too.
func (w *world) remove(name string) {
	n := w.node[name]
	if n == nil {
		return
	}
	w.story.gone(w.now, name, w.config.Registry.ReadJournal(n.now).Record)
	delete(w.node, name)
	w.touched[name] = true
	i, _ := w.find(name)
	if !remediations.Ready(w.nodes[i]) {
		w.unready--
	}
	w.nodes = slices.Delete(slices.Clone(w.nodes), i, i+1)
}

func (w *world) find(name string) (int, bool) {
	return slices.BinarySearchFunc(w.nodes, name, func(n *corev1.Node, name string) int { return strings.Compare(n.Name, name) })
}

// compose builds the Node that the engine sees. It applies Drydock's changes in the replay to the
// recorded Node.
func (w *world) compose(n *node) {
	w.version++
	out := *n.past
	out.ResourceVersion = strconv.Itoa(w.version)
	out.Annotations, out.Labels = maps.Clone(n.past.Annotations), maps.Clone(n.past.Labels)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	delete(out.Labels, remediations.PhaseLabel) // the Drydock of that time set it
	maps.Copy(out.Annotations, n.annotations)
	maps.Copy(out.Labels, n.labels)
	out.Spec.Unschedulable = n.past.Spec.Unschedulable || n.cordoned
	if n.tainted != nil {
		out.Spec.Taints = append(slices.Clone(out.Spec.Taints), corev1.Taint{
			Key: remediations.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute, TimeAdded: n.tainted,
		})
	}
	if out.Status.NodeInfo.BootID == "" {
		out.Status.NodeInfo.BootID = "boot-" + out.Name
	}
	if n.boots > 0 {
		out.Status.NodeInfo.BootID += "-" + strconv.Itoa(n.boots)
	}
	if n.machines > 0 {
		out.UID = types.UID(fmt.Sprintf("%s-%d", out.UID, n.machines))
		out.Spec.ProviderID = fmt.Sprintf("%s-%d", out.Spec.ProviderID, n.machines)
	}
	if n.cured != nil {
		out.Status.Conditions = n.cured.cover(out.Status.Conditions, w.ill)
	}
	i, found := w.find(out.Name)
	if found {
		if !remediations.Ready(w.nodes[i]) {
			w.unready--
		}
		w.nodes[i] = &out
	} else {
		w.nodes = slices.Insert(w.nodes, i, &out)
	}
	if !remediations.Ready(&out) {
		w.unready++
	}
	n.now = &out
	w.touched[out.Name] = true
}

// alert applies the beginning or the end of an alert of the past.
func (w *world) alert(a history.Alert) {
	labels := make(map[string]string, len(a.Labels)+1)
	for name, value := range a.Labels {
		labels[string(name)] = string(value)
	}
	set := a.Labels
	if label := w.config.ClusterLabel; label != "" && labels[label] == "" {
		// Prometheus adds its external labels, for example the cluster's, when it sends an alert. The
		// recorded alert does not have them.
		labels[label] = w.config.ClusterValue
		set = maps.Clone(set)
		set[model.LabelName(label)] = model.LabelValue(w.config.ClusterValue)
	}
	f := &firing{fingerprint: remediations.Fingerprint(labels), labels: labels, set: set, startsAt: a.StartsAt}
	if known := w.about[f.fingerprint]; known != nil {
		f.on = known.on
	} else {
		f.on = w.nodeOf(labels)
	}
	w.about[f.fingerprint] = f
	w.story.fault(f, f.on, a.EndsAt)
	if !a.EndsAt.IsZero() {
		w.ended(f.fingerprint, f.on)
		return
	}
	if n := w.node[f.on]; n != nil {
		n.firing[f.fingerprint] = true
		if n.cured != nil { // the fault continues only in the past; on the cured node this alert would not have fired
			n.cured.hidden[f.fingerprint] = true
			return
		}
	}
	w.alerts.begin(f, w.now)
}

// ended applies the end of an alert of the past.
func (w *world) ended(fingerprint, on string) {
	w.alerts.end(fingerprint)
	delete(w.about, fingerprint)
	n := w.node[on]
	if n == nil {
		return
	}
	delete(n.firing, fingerprint)
	if n.cured != nil {
		if delete(n.cured.hidden, fingerprint); len(n.cured.hidden) == 0 {
			n.cured = nil
			w.compose(n)
		}
	}
	if r := w.config.Registry.ReadJournal(n.now).Record; len(n.firing) == 0 && r != nil && r.Phase == remediations.PhaseExhausted {
		n.annotations[remediations.ResetKey] = "true" // as if the person who fixed the node had reset the repair
		w.compose(n)
	}
}

// nodeOf returns the name of the node that the alert is about according to any policy, or "" if
// there is none.
func (w *world) nodeOf(labels map[string]string) string {
	route, _ := routing.Of(w.config, labels, func(name string) *corev1.Node {
		if n := w.node[name]; n != nil {
			return n.now
		}
		return nil
	})
	return route.Node
}

// cure makes each node healthy whose cure is due now. It returns true if at least one cure was due.
func (w *world) cure() (any bool) {
	for len(w.coming) > 0 && !w.coming[0].at.After(w.now) {
		c := w.coming[0]
		w.coming, any = w.coming[1:], true
		n := w.node[c.node]
		if n == nil || string(n.now.UID) != c.uid {
			continue
		}
		if n.boots++; c.replaces {
			n.machines++
			n.annotations, n.labels, n.cordoned, n.tainted = map[string]string{}, map[string]string{}, false, nil
		}
		if len(n.firing) > 0 {
			n.cured = &cured{at: w.now, hidden: maps.Clone(n.firing)}
			for _, fp := range slices.Sorted(maps.Keys(n.firing)) {
				w.alerts.end(fp)
				w.story.cured(fp, w.now)
			}
		}
		w.compose(n)
	}
	return any
}

// renewed returns when the node's kubelet last renewed its lease. It computes this from the Ready
// condition, which the control plane sets to Unknown when the lease has expired.
func (w *world) renewed(n *corev1.Node) time.Time {
	if r := remediations.ReadyCondition(n); r != nil && r.Status == corev1.ConditionUnknown {
		return r.LastTransitionTime.Add(-leaseFor)
	}
	return w.now
}
