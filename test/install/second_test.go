package install

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestASecondReleaseIsRefused by the real Helm, unless a value allows it. An allowed second release
// must have no admission, which would deny the first release its writes. Drydock's own user may
// update the cluster's Lease, but not create one.
func TestASecondReleaseIsRefused(t *testing.T) {
	l := cluster(t)
	const second = "second"
	t.Cleanup(func() { sweep(t, l, second); sweep(t, l, shipping) })
	chart := filepath.Join(root(t), "charts", "drydock")
	install := func(release string, more ...string) (faults string, err error) {
		_, faults, err = try(t, l, "helm", append([]string{"install", release, chart, "--namespace", release, "--create-namespace"}, more...)...)
		return faults, err
	}
	out, err := install(shipping)
	require.NoError(t, err, out)

	out, err = install(second)
	require.Error(t, err)
	require.Contains(t, out, "this cluster has a Drydock already: release shipping in namespace shipping (Lease kube-system/drydock)")
	out, err = install(second, "--set", "allowSecondRelease=true")
	require.Error(t, err)
	require.Contains(t, out, "set admission.policy.enabled and admission.webhook.enabled to false")
	out, err = install(second, "--set", "allowSecondRelease=true,admission.policy.enabled=false")
	require.NoError(t, err, out)
	helm(t, l, "upgrade") // the first release finds itself

	drydock, err := l.ClientAs("system:serviceaccount:"+second+":"+second, "system:serviceaccounts", "system:serviceaccounts:"+second, "system:authenticated")
	require.NoError(t, err)
	leases := drydock.CoordinationV1().Leases("kube-system")
	await(t, "the right to the cluster's Lease", func() bool {
		lease, err := leases.Get(t.Context(), "drydock", metav1.GetOptions{})
		if err == nil {
			_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		return err == nil
	})
	_, err = leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = leases.Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}
