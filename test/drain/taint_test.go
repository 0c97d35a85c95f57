package drain

import (
	"errors"
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

// mark sets or removes the taint, as the engine's journal does.
func (p *place) mark(read *corev1.Node, out, in *time.Time) (*corev1.Node, error) {
	return kube.NodeWriter{Client: p.admin}.Write(p.t.Context(), read, engine.NodeChange{OutOfService: out, InService: in})
}

// marks does so on the latest version of the Node, and repeats it if a controller changes the Node
// in between.
func (p *place) marks(out, in *time.Time) (read, written *corev1.Node) {
	p.eventually(func() bool {
		var err error
		read = p.read()
		written, err = p.mark(read, out, in)
		if !errors.Is(err, engine.ErrConflict) {
			require.NoError(p.t, err)
		}
		return err == nil
	})
	return read, written
}

func TestATaintIsSetAndTakenAwayBesideThoseOfOthers(t *testing.T) {
	p := newPlace(t)
	at := time.Now()
	p.eventually(func() bool { return p.has(corev1.TaintNodeUnschedulable) }) // the controller sets it because of the cordon
	read, written := p.marks(&at, nil)
	require.True(t, p.has(corev1.TaintNodeOutOfService))
	require.Equal(t, read.Spec.Taints, written.Spec.Taints[:len(written.Spec.Taints)-1], "those of others")
	later := at.Add(time.Hour)
	marked, again := p.marks(&later, nil)
	require.Equal(t, marked.ResourceVersion, again.ResourceVersion, "it is there already")
	_, err := p.mark(read, &at, nil)
	require.ErrorIs(t, err, engine.ErrConflict, "the Node is not as it was read")

	p.cordon(false) // the controller removes its own taint, and owns the list
	p.eventually(func() bool { return !p.has(corev1.TaintNodeUnschedulable) })
	for _, f := range p.read().ManagedFields {
		if f.Manager == remediations.FieldManager {
			require.NotContains(t, string(f.FieldsV1.GetRawBytes()), "f:taints", "why managedFields are not asked")
		}
	}
	p.cordon(true)
	p.eventually(func() bool { return p.has(corev1.TaintNodeUnschedulable) })
	_, err = p.mark(written, nil, &at)
	require.ErrorIs(t, err, engine.ErrConflict, "the list has changed since")
	p.marks(nil, &later)
	require.True(t, p.has(corev1.TaintNodeOutOfService), "one of another time is not ours")
	p.marks(nil, &at)
	require.False(t, p.has(corev1.TaintNodeOutOfService))
	require.True(t, p.has(corev1.TaintNodeUnschedulable))
}

func TestATaintThatAPersonSetStaysTheirs(t *testing.T) {
	p := newPlace(t)
	at := time.Now()
	_, err := p.admin.CoreV1().Nodes().Patch(t.Context(), p.node, types.MergePatchType,
		[]byte(`{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"mine","effect":"NoExecute"}]}}`), metav1.PatchOptions{FieldManager: "kubectl-taint"})
	require.NoError(t, err)
	p.marks(&at, nil)
	p.marks(nil, &at)
	require.True(t, p.has(corev1.TaintNodeOutOfService))
}
