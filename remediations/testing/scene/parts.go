package scene

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/signs"
)

func (sc *Scene) TheNode(t testing.TB) *corev1.Node {
	n := Bare("n1")
	in := sc.Node
	for k, v := range in.Labels {
		n.Labels[k] = v
	}
	for k, v := range in.Annotations {
		n.Annotations[k] = v
	}
	if in.ControlPlane {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
	}
	switch in.Ready {
	case "":
		Unready(n)
	case "none":
		n.Status.Conditions = nil
	default:
		n.Status.Conditions[0].Status = corev1.ConditionStatus(in.Ready)
		if in.ReadyFor != "" {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(Ago(in.ReadyFor, ""))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(in.Conditions)) {
		status := in.Conditions[kind]
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status)})
	}
	for name, count := range in.Allocatable {
		if n.Status.Allocatable == nil {
			n.Status.Allocatable = corev1.ResourceList{}
		}
		n.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(count)
	}
	if in.BootID != nil {
		n.Status.NodeInfo.BootID = *in.BootID
	}
	n.CreationTimestamp = metav1.NewTime(Ago(in.Age, "48h"))
	n.Spec.Unschedulable = in.Cordoned
	for _, key := range in.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
	}
	if in.Deleting {
		n.DeletionTimestamp = &metav1.Time{Time: Noon}
	}
	alerts := sc.Alerts
	if alerts == nil {
		alerts = []Alert{{}}
	}
	for _, a := range alerts {
		alert := remediations.Alert{
			V: remediations.RecordVersion, Name: "NodeNotReady", Policy: a.Policy, Status: a.Status, Fingerprint: a.Fingerprint,
			StartsAt: Ago(a.Started, "10m"), ReceivedAt: Ago(a.Received, "5m"), Labels: map[string]string{"node": "n1"},
		}
		if alert.Policy == "" {
			alert.Policy = "node-not-ready"
		}
		if alert.Status == "" {
			alert.Status = remediations.StatusFiring
		}
		if alert.Fingerprint == "" {
			alert.Fingerprint = FP
		}
		n.Annotations[alert.Key()] = alert.Encode()
	}
	if sc.History != nil {
		n.Annotations[remediations.HistoryKey] = remediations.EncodeJSON(sc.History)
	}
	Annotate(t, n, remediations.NodeRepairKey, sc.Record)
	Annotate(t, n, remediations.LocationKey, sc.Leader)
	return n
}

// Annotate writes a record into the annotation. A string is written unchanged, so that a scene can
// have an invalid record.
func Annotate(t testing.TB, n *corev1.Node, key string, record any) {
	if record == nil {
		return
	}
	text, ok := record.(string)
	if !ok {
		b, err := yaml.Marshal(record)
		require.NoError(t, err)
		b, err = yaml.YAMLToJSON(b)
		require.NoError(t, err)
		text = string(b)
	}
	n.Annotations[key] = text
	if r, err := remediations.DecodeRecord(text); err == nil && key == remediations.NodeRepairKey {
		n.Labels[remediations.PhaseLabel] = string(r.Phase)
	}
}

// Said returns the answers of the Alertmanagers in the scene, or nil if there was no poll.
func (sc *Scene) Said() *alerts.Snapshot {
	if sc.Word.Never {
		return nil
	}
	w := &alerts.Snapshot{AskedAt: Ago(sc.Word.Age, "2s"), WatchdogMisses: sc.Word.WatchdogMisses}
	replicas := sc.Word.Replicas
	if replicas == nil {
		replicas = []Replica{{}, {}}
	}
	for i, r := range replicas {
		rw := r.word(i)
		for _, a := range sc.Alerts {
			if a.Active && rw.Err == nil {
				rw.Alerts[a.Fingerprint] = alerts.Alert{Labels: map[string]string{"node": "n1"}, StartsAt: Ago(a.Started, "10m"), Active: true}
			}
		}
		for i := range sc.Word.Sick {
			node := fmt.Sprintf("n%d", i+2)
			of := map[string]string{"alertname": "NodeNotReady", "remediation": "node-not-ready", "node": node}
			if rw.Err == nil {
				rw.Alerts[remediations.Fingerprint(of)] = alerts.Alert{Labels: of, StartsAt: Noon.Add(-10 * time.Minute), Active: true}
			}
		}
		w.Replicas = append(w.Replicas, rw)
	}
	return w
}

func (r Replica) word(i int) alerts.Replica {
	rw := alerts.Replica{URL: fmt.Sprintf("http://alertmanager-%d", i), Watchdog: !r.NoWatchdog, BlindBy: r.BlindBy, WatchdogAt: Ago(r.WatchdogSent, "20s"), Alerts: map[string]alerts.Alert{}}
	if r.Err != "" {
		return alerts.Replica{URL: rw.URL, Err: errors.New(r.Err)}
	}
	a := alerts.Alert{Labels: map[string]string{"alertname": "NodeNotReady", "remediation": "node-not-ready", "node": "n1"}, StartsAt: Noon.Add(-10 * time.Minute), UpdatedAt: Ago(r.Sent, "20s")}
	a.EndsAt = a.UpdatedAt.Add(4 * time.Minute)
	switch r.Alert {
	case "", "active":
		a.Active = true
	case "silenced":
		a.SilencedBy = []string{"maintenance"}
		if r.Silences != nil {
			a.SilencedBy = nil
		}
		rw.Silences = map[string]alerts.Silence{}
		for _, text := range r.Silences {
			var id, end string
			var of alerts.Silence
			if n, _ := fmt.Sscan(text, &id, &of.Author, &of.Comment, &end); n == 4 {
				of.EndsAt = Noon.Add(Span(end, ""))
				rw.Silences[id] = of
			}
			a.SilencedBy = append(a.SilencedBy, id)
		}
	case "muted":
		a.MutedBy = []string{"nights"}
	case "inhibited":
		a.InhibitedBy = []string{"1234"}
	case "unprocessed":
	case "absent":
		return rw
	default:
		panic(r.Alert)
	}
	rw.Alerts[FP] = a
	return rw
}

// OtherNodes returns the nine nodes other than n1.
func (sc *Scene) OtherNodes() []*corev1.Node {
	var out []*corev1.Node
	for i := range 9 {
		n := Bare(fmt.Sprintf("n%d", i+2))
		if i < sc.Fleet.ControlPlane {
			n.Labels["node-role.kubernetes.io/control-plane"] = ""
			if i < sc.Fleet.ControlPlaneDown {
				Unready(n)
			}
		}
		if i >= 9-sc.Fleet.Unhealthy {
			Unready(n)
		}
		if i < sc.Fleet.InFlight {
			InFlight(n, "reboot")
		}
		if sc.Fleet.Tried != "" && i == sc.Fleet.Common-1 {
			InFlight(n, "reboot")
			InPhase(n, sc.Fleet.Tried)
			r := remediations.ReadJournal(n).Record
			r.Policy = "node-not-ready"
			n.Annotations[remediations.NodeRepairKey] = r.Encode()
		}
		out = append(out, n)
	}
	return out
}

// InFlight puts a repair in phase Verifying, whose remediation is step, on the node.
func InFlight(n *corev1.Node, step string) *corev1.Node {
	r := remediations.Record{
		V: remediations.RecordVersion, ID: "r" + n.Name, Policy: "another-policy", Cause: remediations.Cause{Alert: "aa"}, Phase: remediations.PhaseVerifying,
		Step: remediations.StepRef{Name: step, Attempt: 1}, Began: Noon, Since: Noon, Deadline: Noon.Add(time.Minute),
		Intent: &remediations.Intent{ID: "r" + n.Name + "-0-1", At: Noon},
	}
	n.Annotations[remediations.NodeRepairKey] = r.Encode()
	n.Labels[remediations.PhaseLabel] = string(remediations.PhaseVerifying)
	return n
}

// Bare returns a healthy node that is older than startupGrace.
func Bare(name string) *corev1.Node {
	boot := "boot-" + name
	if name == "n1" { // most scenes are about n1
		boot = "boot1"
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(Noon.Add(-48 * time.Hour)),
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.NodeSpec{ProviderID: "civo://" + name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{BootID: boot},
		},
	}
}

func Unready(n *corev1.Node) *corev1.Node {
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	return n
}

func WitnessOf(text string) *signs.Witness {
	switch text {
	case "unwritten":
		return nil
	case "none":
		return &signs.Witness{None: true}
	case "":
		text = "ready"
	}
	w := &signs.Witness{}
	for _, sign := range strings.Split(text, ", ") {
		w.Signs = append(w.Signs, SignOf(sign))
	}
	return w
}

func SignOf(text string) signs.Sign {
	if kind, status, ok := strings.Cut(text, "="); ok {
		return signs.Sign{Kind: signs.Condition, Name: kind, Status: status}
	}
	if name, ok := strings.CutPrefix(text, "pod "); ok {
		return signs.Sign{Kind: signs.DaemonSetPod, Name: name}
	}
	return signs.Sign{Kind: signs.Kind(text)}
}
