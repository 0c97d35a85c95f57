package kube

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAPodIsOverdueByWhatItsNodeIs(t *testing.T) {
	now := time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	for name, c := range map[string]struct {
		ready   corev1.ConditionStatus // if empty, the node has no such condition
		since   time.Duration
		deleted time.Duration // how long ago
		grace   int64
		want    bool
	}{
		"a well node":                              {corev1.ConditionTrue, time.Hour, time.Hour, 30, false},
		"no condition is no fault":                 {"", time.Hour, time.Hour, 30, false},
		"silent, deleted a moment ago":             {corev1.ConditionUnknown, time.Hour, 59 * time.Second, 0, false},
		"silent, waited for":                       {corev1.ConditionUnknown, time.Hour, 61 * time.Second, 30, true},
		"silent, its grace period means nothing":   {corev1.ConditionUnknown, time.Hour, 61 * time.Second, 3600, true},
		"silent only now, it may have been ending": {corev1.ConditionUnknown, 59 * time.Second, time.Hour, 30, false},
		"unwell but talking, in its grace period":  {corev1.ConditionFalse, time.Hour, 10 * time.Minute, 3600, false},
		"unwell but talking, just after it":        {corev1.ConditionFalse, time.Hour, 89 * time.Second, 30, false},
		"unwell but talking, long after it":        {corev1.ConditionFalse, time.Hour, 91 * time.Second, 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{}
			if c.ready != "" {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.ready, LastTransitionTime: ago(c.since)}}
			}
			ends := ago(c.deleted - time.Duration(c.grace)*time.Second)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &ends, DeletionGracePeriodSeconds: &c.grace}}
			r := &drainRun{Drainer: Drainer{Now: func() time.Time { return now }}, DrainOptions: DrainOptions{DeadAfter: time.Minute}}
			require.Equal(t, c.want, r.overdue(n, pod))
		})
	}
}

func TestAPodWhoseDaemonSetIsGoneHasNoController(t *testing.T) {
	by := func(kind, version string) *corev1.Pod {
		yes := true
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "o", Controller: &yes}}}}
	}
	require.True(t, unmanaged(by("DaemonSet", "apps/v1")), "kubectl has looked for it, and lets only those through whose DaemonSet is gone")
	require.False(t, unmanaged(by("DaemonSet", "apps.kruise.io/v1alpha1")))
	require.False(t, unmanaged(by("ReplicaSet", "apps/v1")))
	owned := by("Node", "v1")
	owned.OwnerReferences[0].Controller = nil
	require.True(t, unmanaged(owned), "an owner that does not control it makes no other")
}

func TestAPodMayComeBackToACordonedNodeWhereItToleratesTheCordonOrIsADaemonSets(t *testing.T) {
	yes := true
	pod := func(kind, version string, ts ...corev1.Toleration) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "o", Controller: &yes}}},
			Spec:       corev1.PodSpec{Tolerations: ts},
		}
	}
	const cordon = corev1.TaintNodeUnschedulable
	for name, ts := range map[string][]corev1.Toleration{
		"all":         {{Operator: corev1.TolerationOpExists}},
		"NoSchedule":  {{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		"the cordon":  {{Key: "gpu", Operator: corev1.TolerationOpExists}, {Key: cordon, Operator: corev1.TolerationOpExists}},
		"its value":   {{Key: cordon, Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule}},
		"no operator": {{Key: cordon}},
	} {
		require.True(t, mayReturn(pod("StatefulSet", "apps/v1", ts...)), name)
	}
	for name, ts := range map[string][]corev1.Toleration{
		"none":          nil,
		"another taint": {{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}},
		"NoExecute":     {{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		"another value": {{Key: cordon, Operator: corev1.TolerationOpEqual, Value: "true"}},
		"a number":      {{Key: cordon, Operator: "Gt", Value: "1"}},
		"nothing named": {{}},
	} {
		require.False(t, mayReturn(pod("StatefulSet", "apps/v1", ts...)), name)
	}
	require.True(t, mayReturn(pod("DaemonSet", "apps.kruise.io/v1alpha1")))
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	require.False(t, mayReturn(pod("DaemonSet", "apps/v1", all)), "its DaemonSet is gone, or kubectl would not let it through")
	require.False(t, mayReturn(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{all}}}), "nobody creates it again")
}

func TestADrainStopsOnlyAtAnAnswerThatWouldComeAgain(t *testing.T) {
	busy := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 503}}
	for _, err := range []error{apierrors.NewUnauthorized("Unauthorized"), busy, errors.New("connection refused")} {
		r := &drainRun{}
		require.NoError(t, r.trouble(t.Context(), "reading the Node", err), "it is tried again")
		require.Contains(t, r.report.Trouble, "reading the Node: ")
	}
	require.Error(t, (&drainRun{}).trouble(t.Context(), "reading the Node", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("no rights"))))
}

func TestAReportIsASentenceThatIsNotTooLong(t *testing.T) {
	held := Held{Pod: "default/web-1", Budget: "default/web", Why: "is held back by PodDisruptionBudget default/web (needs 2 healthy, has 2)"}
	for want, r := range map[string]DrainReport{
		"no pod had to go":                           {},
		"7 of 7 pods are gone":                       {Total: 7, Evicted: 7},
		"reading the Node: no":                       {Trouble: "reading the Node: no"},
		"1 of 2 pods are left":                       {Total: 2, Left: 1},
		"2 of 7 pods are left; reading its pods: no": {Total: 7, Left: 2, Trouble: "reading its pods: no"},
		"2 of 7 pods are left; default/web-1 is held back by PodDisruptionBudget default/web (needs 2 healthy, has 2)":     {Total: 7, Left: 2, Held: []Held{held}},
		"5 of 5 pods are gone; not evicted, because they came after the drain began and tolerate the cordon: default/db-0": {Total: 5, Returned: "default/db-0"},
		"5 of 7 pods are gone; 2 not counted, which are terminating on a node that does not end them":                      {Total: 7, Stuck: 2},
	} {
		require.Equal(t, want, r.String())
	}
}
