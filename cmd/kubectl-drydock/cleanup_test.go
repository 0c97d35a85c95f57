package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
)

// cordonedBy is an exhausted node whose record says that Drydock cordoned it, and whose cordon the
// manager owns.
func cordonedBy(name, manager string) *corev1.Node {
	n := under(name, record("cccccc", remediations.PhaseExhausted, func(r *remediations.Record) {
		r.Undo = []remediations.Undo{{Kind: remediations.UndoCordon, At: now}}
	}))
	n.Spec.Unschedulable = true
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	return n
}

func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	seconds, at := int32(15), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "drydock"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &seconds},
	}
}

func TestCleanupSaysFirstWhatItWouldRemove(t *testing.T) {
	words := node("node-2", map[string]string{
		remediations.AlertPrefix + "9f2c0e5b6d1a4c33": "{}", remediations.HistoryKey: "[]",
		remediations.RequestKey: "remediation/reboot", remediations.PauseKey: "true disk", "example.com/mine": "kept",
	})
	words.Labels[remediations.ExcludeLabel] = "true"
	d := newDesk(t, node("node-1", nil), words, cordonedBy("node-3", remediations.FieldManager), cordonedBy("node-4", "kubectl-cordon"), malformed("node-5"),
		ledgerOf(calmLedger()), leaseOf("", now))
	malformedToo := d.node("node-5")
	malformedToo.Labels[remediations.PhaseLabel] = "Exhausted"
	_, err := d.cluster.CoreV1().Nodes().Update(t.Context(), malformedToo, metav1.UpdateOptions{})
	require.NoError(t, err)

	code, stdout, stderr := d.run("cleanup")
	require.Equal(t, cli.ExitOK, code, stderr)
	golden(t, "cleanup", "$ kubectl drydock cleanup\n"+stdout)
	require.Empty(t, d.patches(), "a dry run")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "kubectl-drydock.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "```console\n$ kubectl drydock cleanup\n"+stdout+"```\n", "what the page prints")

	code, stdout, stderr = d.run("cleanup", "--yes")
	require.Equal(t, cli.ExitOK, code, stderr)
	golden(t, "cleanup-yes", "$ kubectl drydock cleanup --yes\n"+stdout)
	require.Len(t, d.patches(), 4, "one PATCH for each node that has anything")
	for _, name := range []string{"node-1", "node-2", "node-3", "node-4", "node-5"} {
		n := d.node(name)
		for key := range n.Annotations {
			require.Contains(t, []string{remediations.PauseKey, "example.com/mine"}, key, name)
		}
		require.NotContains(t, n.Labels, remediations.PhaseLabel)
		require.Equal(t, name == "node-4", n.Spec.Unschedulable, "%s: only its own cordon", name)
	}
	require.Equal(t, "true", d.node("node-2").Labels[remediations.ExcludeLabel])

	code, stdout, stderr = d.run("cleanup", "--yes")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "No node has anything that Drydock wrote.\n")
}

// TestCleanupRemovesDrydocksConditionsAlone: the same conditions by another writer on another node
// stay.
func TestCleanupRemovesDrydocksConditionsAlone(t *testing.T) {
	says := func(name, reason string) *corev1.Node {
		n := node(name, map[string]string{remediations.HistoryKey: "[]"})
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMaintenanceInProgress, Status: corev1.ConditionTrue, Reason: reason})
		return n
	}
	d := newDesk(t, says("node-1", announce.Reason), says("node-2", "AdminRequested"), ledgerOf(calmLedger()), leaseOf("", now))
	before := len(d.node("node-1").Status.Conditions)
	code, stdout, stderr := d.run("cleanup")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "node-1: would remove drydock.dev/history, condition MaintenanceInProgress\n")
	require.Contains(t, stdout, "node-2: would remove drydock.dev/history\n")
	require.Empty(t, d.patches())

	code, stdout, stderr = d.run("cleanup", "--yes")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "node-1: removed drydock.dev/history, condition MaintenanceInProgress\n")
	require.Len(t, d.node("node-1").Status.Conditions, before-1)
	require.Len(t, d.node("node-2").Status.Conditions, before)
	require.Empty(t, d.node("node-1").Annotations)
}

// TestCleanupRemovesARequestOnTheNode that Drydock made and nothing has taken, whatever its key is.
// The same request by another client stays.
func TestCleanupRemovesARequestOnTheNode(t *testing.T) {
	asked := func(name, manager string) *corev1.Node {
		n := node(name, map[string]string{remediations.AttemptKey: "abcdef-0-1", "example.com/reboot": "now", "example.com/mine": "kept"})
		n.ManagedFields = slices.Concat(setWith(manager, "f:annotations", remediations.AttemptKey), setWith(manager, "f:annotations", "example.com/reboot"),
			setWith("kubectl-annotate", "f:annotations", "example.com/mine"))
		return n
	}
	d := newDesk(t, asked("node-1", remediations.FieldManager), asked("node-2", "kubectl-annotate"), ledgerOf(calmLedger()), leaseOf("", now))
	code, stdout, stderr := d.run("cleanup", "--yes")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "node-1: removed annotation drydock.dev/attempt, annotation example.com/reboot\n")
	require.Equal(t, map[string]string{"example.com/mine": "kept"}, d.node("node-1").Annotations)
	require.Len(t, d.node("node-2").Annotations, 3)
}

// TestACleanupWhoseAnswerIsLostIsNotReportedAsRefused. A refusal is the control.
func TestACleanupWhoseAnswerIsLostIsNotReportedAsRefused(t *testing.T) {
	for want, err := range map[string]error{
		"error: it is unknown whether everything was removed from n: cleaning n failed: ": apierrors.NewServiceUnavailable("no"),
		"error: cleaning n was refused: ":                                                 apierrors.NewForbidden(nodesResource, "n", errors.New("no")),
	} {
		d := newDesk(t, under("n", record("aaaaaa", remediations.PhasePending)), leaseOf("", now), ledgerOf(calmLedger()))
		d.cluster.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		code, _, stderr := d.run("cleanup", "--yes")
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, stderr, want)
	}
}

func TestCleanupWaitsForDrydockAndItsRepairs(t *testing.T) {
	garbled := malformed("n") // its label says Acting
	sidecar := node("n", map[string]string{remediations.RepairPrefix + "leader": record("dddddd", remediations.PhaseVerifying, func(r *remediations.Record) {
		r.Location, r.Step.Name, r.Intent.Successor = "fra1", "promote-leader", "node-10"
		r.Moves = []remediations.Move{{Location: "fra1", From: "n", To: "node-10", Before: map[string]*string{"node-10": nil}}}
	}).Encode()})
	for name, c := range map[string]struct {
		node  *corev1.Node
		lease *coordinationv1.Lease
		want  string
	}{
		"in flight":            {under("n", record("aaaaaa", remediations.PhaseVerifying)), leaseOf("", now), "repair aaaaaa by policy node-not-ready is in flight on n (Verifying, reboot:1)"},
		"a leader's in flight": {sidecar, leaseOf("", now), "repair dddddd by policy node-not-ready is in flight on n (Verifying, promote-leader:1)"},
		"perhaps in flight":    {garbled, leaseOf("", now), "the label drydock.dev/phase=Acting on n says that a repair is in flight"},
		"Drydock runs":         {under("n", record("aaaaaa", remediations.PhasePending)), leaseOf("drydock-0", now.Add(-14*time.Second)), "Drydock still runs and would write again: drydock-0 renewed Lease drydock/drydock at 2026-11-20T21:04:46Z"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.node, c.lease, ledgerOf(calmLedger()))
			code, stdout, _ := d.run("cleanup")
			require.Equal(t, cli.ExitOK, code)
			require.Contains(t, stdout, "Not yet: "+c.want)

			code, stdout, stderr := d.run("cleanup", "--yes")
			require.Equal(t, cli.ExitFailed, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "error: nothing was removed: "+c.want)
			require.Regexp(t, `\A[^\n]+\n\z`, stderr, "one sentence")
			require.Empty(t, d.patches())

			code, _, stderr = d.run("cleanup", "--yes", "--force")
			require.Equal(t, cli.ExitOK, code, stderr)
			require.Empty(t, d.node("n").Annotations, "the control: told to, it does")
		})
	}
	t.Run("this machine's clock is ahead", func(t *testing.T) {
		d := newDesk(t, under("n", record("aaaaaa", remediations.PhasePending)), leaseOf("drydock-0", now.Add(-2*time.Second)), ledgerOf(calmLedger()))
		d.plugin.now = func() time.Time { return now.Add(time.Minute) }
		connect, clock := d.plugin.connect, &inspect.Clock{}
		d.plugin.connect = func() (inspect.Client, error) {
			c, err := connect()
			c.Clock = clock
			return c, err
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		}))
		defer server.Close()
		answer, err := (&http.Client{Transport: clock.Wrap(http.DefaultTransport)}).Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		code, _, stderr := d.run("cleanup", "--yes")
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, stderr, "Drydock still runs")
		require.NotEmpty(t, d.node("n").Annotations)
	})
	t.Run("a Lease that ran out", func(t *testing.T) {
		d := newDesk(t, under("n", record("aaaaaa", remediations.PhasePending)), leaseOf("drydock-0", now.Add(-16*time.Second)), ledgerOf(calmLedger()))
		code, _, stderr := d.run("cleanup", "--yes")
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Empty(t, d.node("n").Annotations)
	})
}
