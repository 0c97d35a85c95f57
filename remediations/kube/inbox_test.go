package kube_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

// TestTheEndOfAnAlertWhoseRepairIsInFlightIsNotWritten: the repair polls Alertmanager itself, and
// is made to do so at once.
func TestTheEndOfAnAlertWhoseRepairIsInFlightIsNotWritten(t *testing.T) {
	const name = "n1"
	fingerprint := remediations.Fingerprint(about(name))
	for what, c := range map[string]struct {
		phase  remediations.Phase
		cause  string
		status string
		want   string
		told   bool
	}{
		"it waits for proof":              {remediations.PhaseVerifying, fingerprint, "resolved", "unchanged", true},
		"its call is under way":           {remediations.PhaseActing, fingerprint, "resolved", "unchanged", true},
		"it waits for a guard":            {remediations.PhasePending, fingerprint, "resolved", "accepted", false},
		"another alert's repair":          {remediations.PhaseVerifying, "9f2c0e5b6d1a4c33", "resolved", "accepted", false},
		"it fires again":                  {remediations.PhaseVerifying, fingerprint, "firing", "accepted", false},
		"the label alone says in flight":  {"", fingerprint, "resolved", "accepted", false},
		"the record alone says in flight": {remediations.PhaseActing, fingerprint, "resolved", "accepted", false},
	} {
		t.Run(what, func(t *testing.T) {
			began := time.Unix(1700000000, 0).UTC()
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Labels: map[string]string{}, Annotations: map[string]string{}}}
			client := fake.NewClientset(n)
			in, told, expected := inbox(t, client), 0, 0
			in.Expected = func() {
				require.Empty(t, client.Actions(), "before it is written")
				expected++
			}
			in.Node, in.Ended = func(string) *corev1.Node { return n }, func() { told++ }
			alert := in.Config.NewAlert(in.Config.Policies[0], about(name), remediations.StatusFiring, began, began)
			r := remediations.Record{V: 1, ID: "n7q4k2", Policy: "p", Phase: c.phase, Cause: remediations.Cause{Alert: c.cause}, Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: began, Since: began, Deadline: began}
			r.Intent = &remediations.Intent{ID: "n7q4k2-0-1", At: began}
			n.Annotations[alert.Key()], n.Annotations[remediations.NodeRepairKey], n.Labels[remediations.PhaseLabel] = alert.Encode(), r.Encode(), string(c.phase)
			switch what {
			case "the label alone says in flight":
				n.Annotations[remediations.NodeRepairKey], n.Labels[remediations.PhaseLabel] = "{}", string(remediations.PhaseVerifying)
			case "the record alone says in flight":
				delete(n.Labels, remediations.PhaseLabel)
			}
			startsAt := began
			if c.status == "firing" {
				startsAt = began.Add(time.Minute)
			}
			result, err := in.Record(t.Context(), about(name), c.status, startsAt)
			require.NoError(t, err)
			require.Equal(t, c.want, result)
			require.Equal(t, c.told, told == 1)
			require.Equal(t, c.status == "firing", expected == 1, "of an end nobody needs to expect anything")
			require.Len(t, client.Actions(), map[string]int{"unchanged": 0, "accepted": 1}[c.want])
		})
	}
}

// TestAnAlertAboutAnyKindIsWhereItsCarrierSays, also for a kind that a test adds to the list;
// without a carrier the alert has no node.
func TestAnAlertAboutAnyKindIsWhereItsCarrierSays(t *testing.T) {
	const volume remediations.Kind = "volume"
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
	in := inbox(t, fake.NewClientset(n))
	in.Node = func(name string) *corev1.Node { return map[string]*corev1.Node{n.Name: n}[name] }
	remount := remediations.Remediation{Name: "remount", Once: true, Target: volume}
	in.Config.Registry, in.Config.Provided = remediations.Registry{remount.Name: remount}, map[string]bool{remount.Name: true}
	in.Config.Kinds = append(in.Config.Kinds, &remediations.TargetKind{
		Kind: volume,
		Name: func(p *remediations.Policy, labels map[string]string) (string, error) {
			if name := labels[p.Labels[0]]; name != "" {
				return name, nil
			}
			return "", errors.New("the alert names no volume")
		},
	})
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "volume-stuck")
	require.NoError(t, err)
	in.Config.Policies = append(in.Config.Policies, &remediations.Policy{
		Name: "v", Mode: remediations.ModeObserve, Match: labels.Matchers{m}, Kind: volume, Labels: []string{"volume"}, Plan: []remediations.Step{{Name: remount.Name, Attempts: 1}},
	})
	gone := errors.New("nobody answers")
	in.Carriers = map[remediations.Kind]kube.Carrier{volume: func(_ context.Context, _, name string) (string, error) {
		if name == "vol-9" {
			return "", gone
		}
		return map[string]string{"vol-7": "n1", "vol-8": "n2"}[name], nil
	}}
	record := func(name string) string {
		result, err := in.Record(t.Context(), map[string]string{"alertname": "A", "remediation": "volume-stuck", "volume": name}, "firing", time.Unix(1700000000, 0))
		if errors.Is(err, gone) {
			return "error"
		}
		require.NoError(t, err)
		return result
	}
	for name, want := range map[string]string{"vol-7": "accepted", "vol-8": "unknown_node", "vol-9": "error", "vol-0": "no_target", "": "no_target"} {
		require.Equal(t, want, record(name), name)
	}
	in.Carriers = nil
	require.Equal(t, "no_target", record("vol-7"), "control")
}

// TestOnePostFillsNoNodeBeyondItsLimit: all its alerts are checked against the Node in the cache,
// which still has its old state.
func TestOnePostFillsNoNodeBeyondItsLimit(t *testing.T) {
	const posted = 200
	for name, c := range map[string]struct {
		room *kube.Room
		most int
	}{"counted": {kube.NewRoom(), remediations.MaxAlertsPerNode}, "not counted": {nil, posted}} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
			client := fake.NewClientset(before.DeepCopy())
			in, now := inbox(t, client), time.Unix(1700000000, 0)
			stored := func() *corev1.Node {
				n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
				require.NoError(t, err)
				return n
			}
			cached := before
			in.Node, in.Room, in.Now = func(string) *corev1.Node { return cached }, c.room, func() time.Time { return now }
			fire := func(i int) (string, error) {
				l := about("n1")
				l["alertname"] = fmt.Sprintf("A%d", i)
				return in.Record(t.Context(), l, "firing", now)
			}
			var all errgroup.Group
			for i := range posted {
				all.Go(func() error { _, err := fire(i); return err })
			}
			require.NoError(t, all.Wait())
			require.Len(t, remediations.AlertsOn(stored().Annotations), c.most)

			// The cache has caught up: the alerts that it shows count, and those that it no longer
			// shows free their places.
			cached = stored().DeepCopy()
			for k := range cached.Annotations {
				delete(cached.Annotations, k)
				break
			}
			now = now.Add(time.Minute)
			got, err := fire(posted)
			require.NoError(t, err)
			require.Equal(t, c.room != nil, got == kube.ResultAccepted, got)
		})
	}
}

// TestAPodOutsideTheProvidersNamespacesIsUnknown, and not an error that makes the sender try again:
// the chart's rights are limited to the providers' namespaces.
func TestAPodOutsideTheProvidersNamespacesIsUnknown(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a-0"}, Spec: corev1.PodSpec{NodeName: n.Name}}
	}
	client := fake.NewClientset(n, pod("sei"), pod("dev"))
	client.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewForbidden(corev1.Resource("pods"), "a-0", errors.New("no right in this namespace"))
		return action.GetNamespace() != "sei", nil, err
	})
	in := podInboxOf(t, client)
	in.Node = func(string) *corev1.Node { return n }
	record := func(namespace string, namespaces ...string) (string, error) {
		in.Carriers[remediations.KindSidecar] = kube.Pods{Client: client, Namespaces: namespaces}.Carrier
		about := aboutPod("a-0")
		about["namespace"] = namespace
		return in.Record(t.Context(), about, "firing", time.Unix(1700000000, 0))
	}
	result, err := record("dev", "sei", "sei-2")
	require.NoError(t, err)
	require.Equal(t, "unknown_pod", result)
	require.Empty(t, client.Actions(), "nobody is asked")

	result, err = record("sei", "sei", "sei-2")
	require.NoError(t, err)
	require.Equal(t, "accepted", result, "control")
	_, err = record("dev")
	require.True(t, apierrors.IsForbidden(err), "a right is missing where the provider takes every namespace: %v", err)
}

// TestTheEndOfAnEarlierEpisodeIsNoNews: a slow replica of Alertmanager delivers it when the alert
// fires again already. Otherwise the alert would count as new, and a repair that a person cancelled
// would begin again.
func TestTheEndOfAnEarlierEpisodeIsNoNews(t *testing.T) {
	first := time.Unix(1700000000, 0).UTC()
	second := first.Add(10 * time.Minute)
	for what, c := range map[string]struct {
		on     string
		began  time.Time
		result string
	}{
		"of the earlier episode": {remediations.StatusFiring, first, kube.ResultUnchanged},
		"of this episode":        {remediations.StatusFiring, second, kube.ResultAccepted},
		"of a later episode":     {remediations.StatusFiring, second.Add(time.Minute), kube.ResultAccepted},
		"of one that is over":    {remediations.StatusResolved, first, kube.ResultAccepted},
	} {
		t.Run(what, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid", Annotations: map[string]string{}}}
			client := fake.NewClientset(n)
			in := inbox(t, client)
			in.Node = func(string) *corev1.Node { return n }
			alert := in.Config.NewAlert(in.Config.Policies[0], about("n1"), c.on, second, second)
			alert.Cancelled = &remediations.CancelledRepair{ID: "n7q4k2", At: second}
			n.Annotations[alert.Key()] = alert.Encode()
			result, err := in.Record(t.Context(), about("n1"), remediations.StatusResolved, c.began)
			require.NoError(t, err)
			require.Equal(t, c.result, result)
			require.Len(t, client.Actions(), map[string]int{kube.ResultUnchanged: 0, kube.ResultAccepted: 1}[c.result])
		})
	}
}
