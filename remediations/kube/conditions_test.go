package kube_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/marks"
)

// conditionsOf makes Drydock maintain the conditions of only that node, on the lab's API server.
func conditionsOf(t *testing.T, name string, client kubernetes.Interface) *kube.Conditions {
	return &kube.Conditions{Client: client, Registry: remediations.Shipped(), Now: time.Now, Log: logr.Discard(), Nodes: func(context.Context) ([]*corev1.Node, error) {
		return []*corev1.Node{kube.Trim(node(t, name))}, nil
	}}
}

// draining writes the record of a drain under way on the Node, or removes it.
func draining(t *testing.T, name string, there bool) *corev1.Node {
	t.Helper()
	var value *string
	if there {
		now := time.Now().UTC().Truncate(time.Second)
		r := remediations.Record{
			V: remediations.RecordVersion, ID: "abc123", Policy: "p", Cause: remediations.Cause{Alert: "f"}, Phase: remediations.PhaseActing,
			Step: remediations.StepRef{Name: "drain", Attempt: 1}, Began: now, Since: now, Deadline: now.Add(time.Minute),
			Intent: &remediations.Intent{ID: "abc123-0-1", At: now},
		}
		value = ptr(r.Encode())
	}
	written, err := kube.NodeWriter{Client: lab.Shared(t).Client()}.Write(t.Context(), node(t, name), engine.NodeChange{Annotations: map[string]*string{remediations.NodeRepairKey: value}})
	require.NoError(t, err)
	return written
}

// inProgress returns the node's conditions of KEP-5683, with their reasons.
func inProgress(t *testing.T, name string) map[corev1.NodeConditionType]string {
	t.Helper()
	out := map[corev1.NodeConditionType]string{}
	for _, c := range node(t, name).Status.Conditions {
		if c.Type == corev1.NodeDrainInProgress || c.Type == corev1.NodeMaintenanceInProgress {
			require.Equal(t, corev1.ConditionTrue, c.Status)
			require.False(t, c.LastTransitionTime.IsZero())
			out[c.Type] = c.Reason
		}
	}
	return out
}

const theirs = "AdminRequested"

// others sets the condition on the node as another client.
func others(t *testing.T, name string, condition corev1.NodeConditionType) {
	t.Helper()
	text, err := announce.Patch(&corev1.Node{}, []corev1.NodeCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: theirs, LastTransitionTime: metav1.Now()}}, nil)
	require.NoError(t, err)
	_, err = lab.Shared(t).Client().CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType, text, metav1.PatchOptions{FieldManager: "another"}, "status")
	require.NoError(t, err)
}

// TestTheConditionsOfARepairOnTheAPIServer: they are set with the record and removed with it. The
// trimmed cache shows, too, that they are Drydock's own. A condition that another client has set or
// taken over stays. A Node that has changed since it was read is not written.
func TestTheConditionsOfARepairOnTheAPIServer(t *testing.T) {
	const name, maintenance, drains = "node-8", corev1.NodeMaintenanceInProgress, corev1.NodeDrainInProgress
	c := conditionsOf(t, name, lab.Shared(t).Client())
	before := len(node(t, name).Status.Conditions)
	stale := draining(t, name, true)
	others(t, name, corev1.NodeMaintenancePlanned)
	_, err := c.Show(t.Context(), stale)
	require.ErrorIs(t, err, engine.ErrConflict)
	require.Empty(t, inProgress(t, name))

	shown, err := c.Show(t.Context(), kube.Trim(node(t, name)))
	require.NoError(t, err)
	require.Equal(t, map[corev1.NodeConditionType]string{maintenance: announce.Reason, drains: announce.Reason}, inProgress(t, name))
	require.Len(t, node(t, name).Status.Conditions, before+3, "all others are still there")
	require.Empty(t, marks.List(nil).Leaving(shown, remediations.Journal{}, time.Now()), "Drydock's own hold nothing")
	require.Equal(t, node(t, name).ResourceVersion, shown.ResourceVersion)
	again, err := c.Show(t.Context(), shown)
	require.NoError(t, err)
	require.Same(t, shown, again, "nothing was due")

	others(t, name, maintenance)
	draining(t, name, false)
	shown, err = c.Show(t.Context(), kube.Trim(node(t, name)))
	require.NoError(t, err)
	require.Equal(t, map[corev1.NodeConditionType]string{maintenance: theirs}, inProgress(t, name), "somebody made it theirs")
	require.Contains(t, marks.List(nil).Leaving(shown, remediations.Journal{}, time.Now()), "MaintenanceInProgress=True", "which holds")

	draining(t, name, true)
	require.NoError(t, c.Keep(t.Context()))
	require.Equal(t, map[corev1.NodeConditionType]string{maintenance: theirs, drains: announce.Reason}, inProgress(t, name), "never overwritten")
	draining(t, name, false)
	require.NoError(t, c.Keep(t.Context()))
	require.Equal(t, map[corev1.NodeConditionType]string{maintenance: theirs}, inProgress(t, name))
}

// TestWhatACrashLeftIsKept: a process may die after the intent and before the conditions, or after
// the end and before their removal. The next leader sets or removes them.
func TestWhatACrashLeftIsKept(t *testing.T) {
	const name = "node-9"
	draining(t, name, true)
	require.Empty(t, inProgress(t, name))
	require.NoError(t, conditionsOf(t, name, lab.Shared(t).Client()).Keep(t.Context()))
	require.Len(t, inProgress(t, name), 2)
	draining(t, name, false)
	require.Len(t, inProgress(t, name), 2)
	require.NoError(t, conditionsOf(t, name, lab.Shared(t).Client()).Keep(t.Context()))
	require.Empty(t, inProgress(t, name))
}

// older is the lab's API server, but it reports that version.
type older struct {
	kubernetes.Interface
	version string
}

func (o older) Discovery() discovery.DiscoveryInterfaces {
	return saying{o.Interface.Discovery(), o.version}
}

type saying struct {
	discovery.DiscoveryInterfaces
	version string
}

func (s saying) ServerVersionWithContext(context.Context) (*version.Info, error) {
	return &version.Info{GitVersion: s.version}, nil
}

// TestNoConditionWhereTheAPIServerDoesNotKnowIt: before Kubernetes 1.37 no condition is set. A
// condition that a newer API server has accepted is still removed. A version that cannot be read is
// an error, and then no condition is set.
func TestNoConditionWhereTheAPIServerDoesNotKnowIt(t *testing.T) {
	const name = "node-10"
	for says, knows := range map[string]bool{"v1.30.14": false, "v1.36.9-gke.1004000": false, "v1.37.0": true, "v1.37.0-eks-1234567": true, "v1.37.2+k3s1": true} {
		draining(t, name, true)
		require.NoError(t, conditionsOf(t, name, older{lab.Shared(t).Client(), says}).Keep(t.Context()), says)
		require.Equal(t, knows, len(inProgress(t, name)) == 2, says)
		draining(t, name, false)
		require.NoError(t, conditionsOf(t, name, older{lab.Shared(t).Client(), "v1.36.9"}).Keep(t.Context()))
		require.Empty(t, inProgress(t, name), says)
	}
	draining(t, name, true)
	err := conditionsOf(t, name, older{lab.Shared(t).Client(), "the newest"}).Keep(t.Context())
	require.ErrorContains(t, err, `reading the API server's version "the newest"`)
	require.Empty(t, inProgress(t, name))
	draining(t, name, false)
}
