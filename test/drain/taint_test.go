package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

func (p *place) read() *corev1.Node {
	p.t.Helper()
	n, err := p.admin.CoreV1().Nodes().Get(p.t.Context(), p.node, metav1.GetOptions{})
	require.NoError(p.t, err)
	return n
}

func (p *place) has(key string) bool {
	for _, t := range p.read().Spec.Taints {
		if t.Key == key {
			return true
		}
	}
	return false
}

func TestATaintIsSetAndTakenAwayBesideThoseOfOthers(t *testing.T) {
	p := newPlace(t)
	j, at := kube.Journal{Client: p.admin}, time.Now()
	owns := func() bool {
		owned, err := j.OwnsTaint(t.Context(), p.node, corev1.TaintNodeOutOfService, at)
		require.NoError(t, err)
		return owned
	}
	p.eventually(func() bool { return p.has(corev1.TaintNodeUnschedulable) }) // by the controller, for the cordon
	require.False(t, owns())
	read := p.read()
	written, err := j.Taint(t.Context(), read, kube.OutOfService(at))
	require.NoError(t, err)
	require.True(t, owns())
	require.Equal(t, read.Spec.Taints, written.Spec.Taints[:len(written.Spec.Taints)-1], "those of others")
	again, err := j.Taint(t.Context(), written, kube.OutOfService(at.Add(time.Hour)))
	require.NoError(t, err)
	require.Equal(t, written.ResourceVersion, again.ResourceVersion, "it is there already")

	_, err = j.Taint(t.Context(), read, kube.OutOfService(at))
	require.ErrorIs(t, err, engine.ErrConflict, "the Node is not as it was read")
	_, err = j.Untaint(t.Context(), p.read(), corev1.TaintNodeUnschedulable, at.Add(-time.Hour))
	require.NoError(t, err, "nothing of Drydock's is to be taken away")
	require.True(t, p.has(corev1.TaintNodeUnschedulable))

	p.cordon(false) // the controller takes its own taint away, and owns the list
	p.eventually(func() bool { return !p.has(corev1.TaintNodeUnschedulable) })
	require.True(t, owns(), "whoever wrote the list last")
	for _, f := range p.read().ManagedFields {
		if f.Manager == remediations.FieldManager {
			require.NotContains(t, string(f.FieldsV1.GetRawBytes()), "f:taints", "why managedFields are not asked")
		}
	}
	p.cordon(true)
	p.eventually(func() bool { return p.has(corev1.TaintNodeUnschedulable) })
	_, err = j.Untaint(t.Context(), written, corev1.TaintNodeOutOfService, at)
	require.ErrorIs(t, err, engine.ErrConflict, "the list has changed since")
	_, err = j.Untaint(t.Context(), p.read(), corev1.TaintNodeOutOfService, at)
	require.NoError(t, err)
	require.False(t, p.has(corev1.TaintNodeOutOfService))
	require.True(t, p.has(corev1.TaintNodeUnschedulable))
	require.False(t, owns())
}

func TestATaintThatAPersonSetStaysTheirs(t *testing.T) {
	p := newPlace(t)
	j, at := kube.Journal{Client: p.admin}, time.Now()
	_, err := p.admin.CoreV1().Nodes().Patch(t.Context(), p.node, types.MergePatchType,
		[]byte(`{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"mine","effect":"NoExecute"}]}}`), metav1.PatchOptions{FieldManager: "kubectl-taint"})
	require.NoError(t, err)
	_, err = j.Taint(t.Context(), p.read(), kube.OutOfService(at))
	require.NoError(t, err)
	owned, err := j.OwnsTaint(t.Context(), p.node, corev1.TaintNodeOutOfService, at)
	require.NoError(t, err)
	require.False(t, owned)
	_, err = j.Untaint(t.Context(), p.read(), corev1.TaintNodeOutOfService, at)
	require.NoError(t, err)
	require.True(t, p.has(corev1.TaintNodeOutOfService))
	_, err = j.OwnsTaint(t.Context(), "no-such-node", corev1.TaintNodeOutOfService, at)
	require.ErrorIs(t, err, engine.ErrNotFound)
}
