package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/test/admission/requests"
)

// TestADrydockWhoseWritesAPolicyDeniesSaysSo: Drydock reports the denied writes from the first
// alert that it cannot write until the policy is gone. The time before the policy is the control.
// The same Drydock also reports when its webhook was last called.
func TestADrydockWhoseWritesAPolicyDeniesSaysSo(t *testing.T) {
	const node, policy = "write-denied", "denies-drydock"
	l := lab.Shared(t)
	d := startLeading(t, l)
	ctx := context.WithoutCancel(t.Context())
	_, err := l.Client().CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Client().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}) })
	status := func() ledger.Status {
		cm, err := l.Client().CoreV1().ConfigMaps(lab.Namespace).Get(ctx, "drydock-ledger", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ledger.Status{}
		}
		require.NoError(t, err)
		book, err := ledger.Decode(cm.Data)
		require.NoError(t, err)
		return book.Status
	}
	y := &yard{t: t, lab: l, drydock: d}
	// Without a cause, a dry run is made only every 5 minutes. The waits here are shorter, so only
	// a cause can make one.
	soon := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, 2*time.Minute, 100*time.Millisecond, "waiting for %s", what)
	}

	soon("the ledger to say when the webhook was asked", func() bool {
		cordon := []byte(`{"spec":{"unschedulable":true}}`)
		_, _ = as(t, l, requests.Person).CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, cordon, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		a := status().Admission
		return a != nil && !a.Serving.IsZero() && !a.Last.IsZero()
	})
	require.Contains(t, scraped(t, d), `drydock_blind{cause="denied"} 0`, "the control")
	require.Empty(t, status().Denied, "the control")
	require.Empty(t, y.events("WritesDenied"), "the control")

	removed := denyAlerts(t, l, policy)
	post(t, d, node)
	soon("the denial to be a metric", func() bool { return strings.Contains(scraped(t, d), `drydock_blind{cause="denied"} 1`) })
	soon("the denial to be in the ledger", func() bool { return strings.Contains(status().Denied, policy) })
	soon("the denial to be an Event", func() bool { return len(y.events("WritesDenied")) == 1 })
	require.Contains(t, y.events("WritesDenied")[0], "ValidatingAdmissionPolicy '"+policy+"'")
	require.Empty(t, y.events("WritesTaken"))

	removed()
	soon("the writes to be taken again", func() bool { return strings.Contains(scraped(t, d), `drydock_blind{cause="denied"} 0`) })
	soon("the ledger to say no denial", func() bool { return status().Denied == "" })
	soon("the end to be an Event", func() bool { return len(y.events("WritesTaken")) == 1 })
}

// startLeading starts a Drydock that leads, observes and serves admission.
func startLeading(t *testing.T, l *lab.Lab) *lab.Drydock {
	t.Helper()
	admission, err := lab.NewAdmission(map[string]any{"exempt": exempt()})
	require.NoError(t, err)
	token, err := l.PrepareDrydockWith(t.Context(), admission.Values(map[string]any{"mode": "observe"}))
	require.NoError(t, err)
	t.Cleanup(func() { removeAdmission(t, l) })
	endLead := func() {
		err := l.Client().CoordinationV1().Leases(lab.Namespace).Delete(context.WithoutCancel(t.Context()), "drydock", metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	}
	endLead() // ends the lead of another test's replica
	d, err := l.StartDrydock(t.Context(), token, lab.DrydockOptions{Admission: admission, Config: map[string]any{
		"mode": "observe", "alertmanager": map[string]any{"urls": []any{"http://127.0.0.1:9"}},
		"policies": []any{map[string]any{"name": "node-not-ready", "match": []any{`a="b"`}, "witness": "none", "plan": []any{map[string]any{"step": "reboot"}}}},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { d.Kill(); endLead() })
	return d
}

// denyAlerts installs a policy that denies everyone to write alerts on Nodes, and returns when it
// is in force. removed deletes the policy.
func denyAlerts(t *testing.T, l *lab.Lab, name string) (removed func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	admission := l.Client().AdmissionregistrationV1()
	_, err := admission.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!has(object.metadata.annotations) || !object.metadata.annotations.exists(k, k.startsWith('" + remediations.AlertPrefix + "'))",
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	removed = func() {
		_ = admission.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = admission.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	t.Cleanup(removed)
	nodes, err := l.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.NotEmpty(t, nodes.Items)
	try := []byte(`{"metadata":{"annotations":{"` + remediations.AlertPrefix + `try":""}}}`)
	await(t, "the policy to be in force", func() bool {
		_, err := as(t, l, requests.Drydock).CoreV1().Nodes().Patch(ctx, nodes.Items[0].Name, types.MergePatchType, try, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), name)
	})
	return removed
}

// post posts an alert about the node as Alertmanager does.
func post(t *testing.T, d *lab.Drydock, node string) {
	t.Helper()
	token, err := os.ReadFile(d.TokenFile)
	require.NoError(t, err)
	labels := map[string]string{"alertname": "NodeNotReady", "a": "b", "node": node}
	body, err := json.Marshal(map[string]any{"version": "4", "status": "firing", "receiver": "drydock", "alerts": []any{map[string]any{
		"status": "firing", "labels": labels, "startsAt": time.Now().UTC(), "fingerprint": remediations.Fingerprint(labels),
	}}})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.ReceiverURL, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Less(t, res.StatusCode, http.StatusBadRequest)
}
