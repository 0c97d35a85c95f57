package e2e

import (
	"context"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/medik8s"
)

// A node whose Lease is held by another holder is not repaired, and the hold names the holder. When
// that Lease is gone, the node is rebooted, once. Drydock holds the Lease before the reset leaves,
// and releases it when the repair has ended.
func TestTheLeaseOfMedik8sIsSomebodysAtATime(t *testing.T) {
	const node, name = "node-72", "node-node-72"
	y := newYard(t)
	leases, ctx := y.lab.Client().CoordinationV1().Leases(medik8s.Namespace), context.WithoutCancel(t.Context())
	_, err := leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("NodeHealthCheck-workers"), LeaseDurationSeconds: ptr.To(int32(3600)), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(leases.Delete(ctx, name, metav1.DeleteOptions{}))) })
	var atReset *coordinationv1.Lease
	b := y.bmc(node, lab.BMCOptions{Reset: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		atReset, _ = leases.Get(ctx, name, metav1.GetOptions{}) // if it cannot be read, it shows no holder
		next.ServeHTTP(w, r)
	}})
	o := metal([]any{resets(reset(patience))}, b)
	o.Config["announce"] = []any{"medik8s"}
	d := y.run(o)
	check, err := exec.CommandContext(t.Context(), y.lab.DrydockProgram(), "check", d.ConfigFile, "--kubeconfig", y.lab.AdminKubeconfig()).Output()
	require.NoError(t, err)
	require.NotContains(t, string(check), medik8s.Namespace, "Drydock takes part")

	y.fail(node)
	r := y.held(node, remediations.ReasonNodeUnderRepair)
	require.Contains(t, r.Hold.Message, `"NodeHealthCheck-workers" holds Lease medik8s-leases/`+name+" until ")
	require.Nil(t, r.Intent)
	require.Empty(t, b.Resets())

	require.NoError(t, leases.Delete(ctx, name, metav1.DeleteOptions{}))
	e := y.ended(node)
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"ForceRestart"}, kinds(b))
	require.Equal(t, "drydock", ptr.Deref(atReset.Spec.HolderIdentity, ""))
	require.Len(t, atReset.OwnerReferences, 1)
	require.Equal(t, y.node(node).UID, atReset.OwnerReferences[0].UID)
	require.Eventually(t, func() bool {
		_, err := leases.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, lab.Patience, 100*time.Millisecond, "the Lease is given back")
}
