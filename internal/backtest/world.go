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

// The kubelet's default duration of a lease.
const leaseFor = 40 * time.Second

// The Nodes of the past, with what Drydock wrote on them in the replay. The engine uses it in place
// of the cluster.
type world struct {
	*simulation
	config *remediations.Config
	alerts *alertmanager
	ill    map[corev1.NodeConditionType]corev1.ConditionStatus
	cures  Cures
	curing bool

	// nodes are sorted by name.
	nodes   []*corev1.Node
	node    map[string]*node
	unready int
	version int
	// The Nodes that were added, changed or removed since the engine's last call of Changed.
	touched map[string]bool

	about map[string]*firing

	ledger   map[string]string
	ledgerAt int
	coming   []coming
	story    *story
	// Called for each write on a Node if not nil.
	wrote func(before, after *corev1.Node)
	// Called if not nil when the engine reads a sample of the nodes' leases.
	asked func(names []string)
	// Called for each decision about a node if not nil.
	decided func(node string, d lifecycle.Decision)
}

type node struct {
	past, now *corev1.Node
	// Only what Drydock itself wrote is in these fields.
	annotations, labels map[string]string
	cordoned            bool
	tainted             *metav1.Time
	cured               *cured
	// Boots and replacements of the machine that steps caused.
	boots, machines int
	// Fingerprints of the recorded alerts that fire on the node now.
	firing map[string]bool
}

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

// A deleted Node ends the hold of its repair, and the repair itself if it issued no step. The
// engine makes no more decisions about it.
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

func (w *world) alert(a history.Alert) {
	labels := make(map[string]string, len(a.Labels)+1)
	for name, value := range a.Labels {
		labels[string(name)] = string(value)
	}
	set := a.Labels
	if label := w.config.ClusterLabel; label != "" && labels[label] == "" {
		// Prometheus adds its external labels when it sends an alert. The recorded alert does not
		// have them.
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

// nodeOf returns "" if the alert is about no node according to any policy.
func (w *world) nodeOf(labels map[string]string) string {
	route, _ := routing.Of(w.config, labels, func(name string) *corev1.Node {
		if n := w.node[name]; n != nil {
			return n.now
		}
		return nil
	})
	return route.Node
}

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

// The control plane sets Ready to Unknown when a lease has expired. The time of that shows when the
// lease was last renewed.
func (w *world) renewed(n *corev1.Node) time.Time {
	if r := remediations.ReadyCondition(n); r != nil && r.Status == corev1.ConditionUnknown {
		return r.LastTransitionTime.Add(-leaseFor)
	}
	return w.now
}
