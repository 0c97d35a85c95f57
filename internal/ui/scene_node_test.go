package ui

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

var illLabels = map[string]string{"alertname": "NodeNotReady", "remediation": "node-not-ready", "node": "node-3", "severity": "critical"}

// withAlert gives the node an alert of the policy that has been firing since then.
func withAlert(since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		unready(n)
		labels := map[string]string{}
		for k, v := range illLabels {
			labels[k] = v
		}
		labels["node"] = n.Name
		a := remediations.Alert{
			V: remediations.RecordVersion, Name: "NodeNotReady", Policy: "node-not-ready", Status: remediations.StatusFiring, StartsAt: since, ReceivedAt: since.Add(time.Minute),
			Labels: map[string]string{"node": n.Name}, Fingerprint: remediations.Fingerprint(labels),
		}
		n.Annotations[a.Key()] = a.Encode()
	}
}

// withSidecar gives the node an alert about the sidecar of a pod there.
func withSidecar(n *corev1.Node) {
	a := remediations.Alert{
		V: remediations.RecordVersion, Name: "SidecarNotReady", Policy: "sidecar-not-ready", Status: remediations.StatusFiring, StartsAt: now.Add(-5 * time.Minute), ReceivedAt: now.Add(-4 * time.Minute),
		Labels: map[string]string{"namespace": "sei", "pod": "rpc-0"}, Fingerprint: remediations.Fingerprint(map[string]string{"alertname": "SidecarNotReady", "pod": "rpc-0"}),
	}
	n.Annotations[a.Key()] = a.Encode()
}

// withRecord puts a repair on the node.
func withRecord(id string, phase remediations.Phase, change ...func(*remediations.Record)) func(*corev1.Node) {
	return func(n *corev1.Node) {
		labels := map[string]string{}
		for k, v := range illLabels {
			labels[k] = v
		}
		labels["node"] = n.Name
		r := &remediations.Record{
			V: remediations.RecordVersion, ID: id, Policy: "node-not-ready", Cause: remediations.Cause{Alert: remediations.Fingerprint(labels)}, Phase: phase,
			Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: now.Add(-4 * time.Minute), Since: now.Add(-3 * time.Minute), Deadline: now.Add(7 * time.Minute),
		}
		if phase != remediations.PhasePending {
			r.Done = remediations.Attempts{{Name: "reboot", Number: 1}}
			r.Intent = &remediations.Intent{ID: id + "-0-1", At: now.Add(-3*time.Minute - 2*time.Second), Outcome: remediations.CallAccepted, Provider: "civo"}
		}
		if phase == remediations.PhaseExhausted {
			r.Deadline = time.Time{}
		}
		for _, c := range change {
			c(r)
		}
		n.Annotations[remediations.NodeRepairKey], n.Labels[remediations.PhaseLabel] = r.Encode(), string(phase)
	}
}

// installed is Drydock in the cluster: a leader, a calm ledger, its configuration.
func installed() []runtime.Object {
	holder, seconds, renewed := "drydock-0", int32(15), metav1.NewMicroTime(now)
	l := &ledger.Ledger{Status: ledger.Status{Mode: remediations.ModeEnforce}}
	labels := map[string]string{"app.kubernetes.io/name": "drydock"}
	return []runtime.Object{
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "drydock"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: inspect.LedgerName, Labels: map[string]string{"app.kubernetes.io/name": "drydock", "app.kubernetes.io/component": "ledger"}},
			Data:       l.Encode(),
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "drydock", Labels: labels}, Data: map[string]string{"drydock.yaml": `
apiVersion: drydock.dev/v1alpha1
kind: Config
mode: enforce
receiver: {tokenFile: /etc/drydock/token}
alertmanager: {urls: ["http://alertmanager-operated.monitoring:9093"]}
providers:
  civo: {clusterID: 9c89d8b9-463d-45f2-8928-455eb3f3726a, region: LON1, apiKeyFile: /etc/drydock/civo-api-key}
  sidecars: [{name: sei}]
policies:
- name: node-not-ready
  plan: [{step: reboot, wait: 10m, attempts: 2}]
`}},
	}
}

// allow gives the user all rights except the denied ones. A denial is the verb, or the verb and the
// resource.
func (d *desk) allow(denied ...string) { d.denied.Store(&denied) }

// review answers whether the user has a right, once allow was called. It is set before the page
// runs: the fake's list of answers must not grow during requests.
func (d *desk) review(a clienttesting.Action) (bool, runtime.Object, error) {
	denied := d.denied.Load()
	if denied == nil {
		return false, nil, nil
	}
	created, _ := a.(clienttesting.CreateAction)
	r, _ := created.GetObject().(*authorizationv1.SelfSubjectAccessReview)
	r = r.DeepCopy()
	r.Status.Allowed = !slices.Contains(*denied, r.Spec.ResourceAttributes.Verb)
	return true, r, nil
}

// honest makes the fake API server keep a dry run from writing, as a real one does.
func (d *desk) honest() {
	d.react("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p, _ := a.(clienttesting.PatchActionImpl)
		if len(p.PatchOptions.DryRun) == 0 {
			return false, nil, nil
		}
		n, err := d.cluster.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", p.Name)
		return true, n, err
	})
}

// say posts an action, and returns the code and the answer.
func (d *desk) say(node, word, body string) (int, map[string]any) {
	d.t.Helper()
	r := d.request(http.MethodPost, "/nodes/"+node+"/words/"+word)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	res, text := d.do(r)
	var out map[string]any
	require.NoError(d.t, json.Unmarshal([]byte(text), &out), text)
	return res.StatusCode, out
}

// write does what a person does: it tries the action, and writes it with the number from the answer
// to the try.
func (d *desk) write(node, word, params string) (int, map[string]any) {
	d.t.Helper()
	code, tried := d.say(node, word, `{"params":{`+params+`},"dryRun":true}`)
	if code != http.StatusOK {
		return code, tried
	}
	click, _ := tried["click"].(string)
	return d.say(node, word, `{"params":{`+params+`},"click":"`+click+`"}`)
}

func (d *desk) annotations(name string) map[string]string {
	d.t.Helper()
	n, err := d.cluster.CoreV1().Nodes().Get(d.t.Context(), name, metav1.GetOptions{})
	require.NoError(d.t, err)
	return n.Annotations
}

func (d *desk) facts(path string) map[string]any {
	d.t.Helper()
	var out map[string]any
	require.NoError(d.t, json.Unmarshal([]byte(d.get(path)), &out))
	return out
}

// events are Events of the node, each a minute younger than the one before.
func events(node string, reasons ...string) (out []runtime.Object) {
	for i, reason := range reasons {
		out = append(out, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: node + reason}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node}, Type: corev1.EventTypeNormal,
			Reason: reason, Message: "repair n7q4k2: reboot:1", ReportingController: "drydock", EventTime: metav1.NewMicroTime(now.Add(time.Duration(i-10) * time.Minute)),
		})
	}
	return out
}
