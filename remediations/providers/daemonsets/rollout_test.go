package daemonsets_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/daemonsets"
)

func TestARolloutRestartReplacesEveryPodOnce(t *testing.T) {
	l := newDaemonSets(t)
	name := l.create(daemonSet("kube-proxy", "kube-proxy:v1.36.3"))
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	bounded := l.only(nil, rule("apps", "daemonsets", []string{"get", "patch"}, name.Name))
	rollouts := daemonsets.Rollouts{Client: bounded, Allowed: []types.NamespacedName{name}, Now: func() time.Time { return now }}
	before := map[string]map[string]types.UID{}
	for _, node := range []string{"node-0", "node-1", "node-2"} {
		before[node] = l.pods(name, node)
	}
	m := engine.Machine{Node: "node-0", DaemonSet: name.String()}
	s := rollouts.Survey(t.Context(), m)
	require.Empty(t, s.Trouble)
	require.Equal(t, name.String(), kept(t, s).Pool)
	require.Equal(t, 3, kept(t, s).Count)
	m.Before = s.Before

	r, err := rollouts.Proven(t.Context(), s.Before)
	require.NoError(t, err)
	require.Equal(t, "DaemonSet kube-system/kube-proxy has not changed yet", r.Missing, "all pods run, but none is new")
	outcome, err := rollouts.Act(t.Context(), m, func() error { return errors.New("it is silenced") })
	require.EqualError(t, err, "it is silenced")
	require.Equal(t, remediations.CallRefused, outcome)

	outcome, err = rollouts.Act(t.Context(), m, still)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Contains(t, rollouts.Survey(t.Context(), m).Trouble, "is already being rolled out", "a second request meets the first")
	require.Eventually(t, func() bool {
		r, err = rollouts.Proven(t.Context(), s.Before)
		return err == nil && r.Missing == ""
	}, 5*time.Minute, 100*time.Millisecond)
	ds := l.settled(name)
	require.Equal(t, "2026-11-21T12:00:00Z", ds.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
	for node, old := range before {
		after := l.pods(name, node)
		require.Len(t, after, 1)
		require.NotEqual(t, old[onlyName(old)], after[onlyName(after)], node)
	}

	outcome, err = rollouts.Act(t.Context(), m, still)
	require.ErrorContains(t, err, "has changed since the decision")
	require.Equal(t, remediations.CallRefused, outcome)
	require.Equal(t, ds.Generation, l.settled(name).Generation, "an attempt restarts them once at most")
}

func TestARolloutThatCannotBeIsRefusedBeforehand(t *testing.T) {
	client := lab.Shared(t).Client()
	make := func(name string, change func(*appsv1.DaemonSet)) types.NamespacedName {
		ds := daemonSet(name, "x:v1.0.0")
		change(ds)
		made, err := client.AppsV1().DaemonSets(ds.Namespace).Create(t.Context(), ds, metav1.CreateOptions{})
		require.NoError(t, err)
		made.Status = ds.Status
		_, err = client.AppsV1().DaemonSets(ds.Namespace).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
		return types.NamespacedName{Namespace: ds.Namespace, Name: ds.Name}
	}
	onDelete := make("on-delete", func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	})
	rolling := make("rolling", func(ds *appsv1.DaemonSet) {
		ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 2}
	})
	unseen := make("unseen", func(*appsv1.DaemonSet) {})
	nowhere := make("nowhere", func(ds *appsv1.DaemonSet) { ds.Status.ObservedGeneration = 1 })
	broken := make("broken", func(ds *appsv1.DaemonSet) {
		ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberUnavailable: 3}
	})
	missing := types.NamespacedName{Namespace: "kube-system", Name: "no-such-daemon-set"}
	rollouts := daemonsets.Rollouts{Client: client, Allowed: []types.NamespacedName{onDelete, rolling, unseen, nowhere, broken, missing}, Now: time.Now}
	for of, why := range map[string]string{
		onDelete.String(): "DaemonSet kube-system/on-delete has the update strategy OnDelete",
		rolling.String():  "is already being rolled out",
		unseen.String():   "is already being rolled out",
		nowhere.String():  "has no pods on any node",
		missing.String():  "does not exist",
		"kube-system/cni": "Drydock may not restart DaemonSet kube-system/cni",
		"kube-proxy":      `"kube-proxy" is not the namespace/name of a DaemonSet`,
	} {
		m := engine.Machine{Node: "node-0", DaemonSet: of, Before: "{}"}
		s := rollouts.Survey(t.Context(), m)
		require.Contains(t, s.Trouble, why)
		require.False(t, s.Fleetwide, of)
		outcome, err := rollouts.Act(t.Context(), m, func() error { t.Fatal("nothing is about to be done"); return nil })
		require.ErrorContains(t, err, why)
		require.Equal(t, remediations.CallRefused, outcome)
	}
	require.Empty(t, rollouts.Survey(t.Context(), engine.Machine{Node: "node-0", DaemonSet: broken.String()}).Trouble, "pods that fail are why one restarts them")
}
