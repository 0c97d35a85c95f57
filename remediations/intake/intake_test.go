package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
)

// newIntake returns an Intake that writes on the client's Nodes at once, without a queue.
func newIntake(t *testing.T, client kubernetes.Interface) intake.Intake {
	t.Helper()
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "node-not-ready")
	require.NoError(t, err)
	return intake.Intake{
		Config: &remediations.Config{Policies: []*remediations.Policy{{Name: "p", Mode: remediations.ModeObserve, Match: labels.Matchers{m}, Labels: []string{"node"}}}},
		Writer: intake.Direct(func(ctx context.Context, n *corev1.Node, annotations map[string]*string) error {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID, "annotations": annotations}})
			if err == nil {
				_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			}
			return err
		}),
		Now: time.Now,
	}
}

func about(node string) map[string]string {
	return map[string]string{"alertname": "A", "remediation": "node-not-ready", "node": node, "severity": "critical", "pod": "x"}
}

// TestTheEndOfAnAlertWhoseRepairIsInFlightIsNotWritten: the repair polls Alertmanager itself, and
// Ended makes it poll at once.
func TestTheEndOfAnAlertWhoseRepairIsInFlightIsNotWritten(t *testing.T) {
	const name = "n1"
	fingerprint := remediations.Fingerprint(about(name))
	for what, c := range map[string]struct {
		phase  remediations.Phase
		cause  string
		status string
		want   intake.Result
		ended  bool
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
			in, ended, expected := newIntake(t, client), 0, 0
			in.Expected = func() {
				require.Empty(t, client.Actions(), "before it is written")
				expected++
			}
			in.Node, in.Ended = func(string) *corev1.Node { return n }, func() { ended++ }
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
			require.Equal(t, c.ended, ended == 1)
			require.Equal(t, c.status == "firing", expected == 1, "of an end nobody needs to expect anything")
			require.Len(t, client.Actions(), map[intake.Result]int{"unchanged": 0, "accepted": 1}[c.want])
		})
	}
}

// TestAnAlertAboutAnyKindIsWhereItsCarrierSays: the carrier of the target's kind finds the node,
// also for a kind that a test adds. Without a carrier the alert has no node.
func TestAnAlertAboutAnyKindIsWhereItsCarrierSays(t *testing.T) {
	const volume remediations.Kind = "volume"
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
	in := newIntake(t, fake.NewClientset(n))
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
	in.Carriers = map[remediations.Kind]intake.Carrier{volume: func(_ context.Context, _, name string) (string, error) {
		if name == "vol-9" {
			return "", gone
		}
		return map[string]string{"vol-7": "n1", "vol-8": "n2"}[name], nil
	}}
	record := func(name string) intake.Result {
		result, err := in.Record(t.Context(), map[string]string{"alertname": "A", "remediation": "volume-stuck", "volume": name}, "firing", time.Unix(1700000000, 0))
		if errors.Is(err, gone) {
			return "error"
		}
		require.NoError(t, err)
		return result
	}
	for name, want := range map[string]intake.Result{"vol-7": "accepted", "vol-8": "unknown_node", "vol-9": "error", "vol-0": "no_target", "": "no_target"} {
		require.Equal(t, want, record(name), name)
	}
	in.Carriers = nil
	require.Equal(t, intake.NoTarget, record("vol-7"), "control")
}

// TestOnePostFillsNoNodeBeyondItsLimit: each alert of the post is checked against the same old Node
// in the cache, and still the Node gets no more alerts than its limit.
func TestOnePostFillsNoNodeBeyondItsLimit(t *testing.T) {
	const posted = 200
	for name, c := range map[string]struct {
		room *intake.Room
		most int
	}{"counted": {intake.NewRoom(), remediations.MaxAlertsPerNode}, "not counted": {nil, posted}} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
			client := fake.NewClientset(before.DeepCopy())
			in, now := newIntake(t, client), time.Unix(1700000000, 0)
			stored := func() *corev1.Node {
				n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
				require.NoError(t, err)
				return n
			}
			cached := before
			in.Node, in.Room, in.Now = func(string) *corev1.Node { return cached }, c.room, func() time.Time { return now }
			fire := func(i int) (intake.Result, error) {
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
			require.Equal(t, c.room != nil, got == intake.Accepted, got)
		})
	}
}

// TestTheEndOfAnEarlierEpisodeChangesNothing: a slow Alertmanager replica delivers the end of an
// earlier episode after the alert has begun to fire again. Otherwise the alert would count as new,
// and a repair that a person cancelled would begin again.
func TestTheEndOfAnEarlierEpisodeChangesNothing(t *testing.T) {
	first := time.Unix(1700000000, 0).UTC()
	second := first.Add(10 * time.Minute)
	for what, c := range map[string]struct {
		on     string
		began  time.Time
		result intake.Result
	}{
		"of the earlier episode": {remediations.StatusFiring, first, intake.Unchanged},
		"of this episode":        {remediations.StatusFiring, second, intake.Accepted},
		"of a later episode":     {remediations.StatusFiring, second.Add(time.Minute), intake.Accepted},
		"of one that is over":    {remediations.StatusResolved, first, intake.Accepted},
	} {
		t.Run(what, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid", Annotations: map[string]string{}}}
			client := fake.NewClientset(n)
			in := newIntake(t, client)
			in.Node = func(string) *corev1.Node { return n }
			alert := in.Config.NewAlert(in.Config.Policies[0], about("n1"), c.on, second, second)
			alert.Cancelled = &remediations.CancelledRepair{ID: "n7q4k2", At: second}
			n.Annotations[alert.Key()] = alert.Encode()
			result, err := in.Record(t.Context(), about("n1"), remediations.StatusResolved, c.began)
			require.NoError(t, err)
			require.Equal(t, c.result, result)
			require.Len(t, client.Actions(), map[intake.Result]int{intake.Unchanged: 0, intake.Accepted: 1}[c.result])
		})
	}
}

// TestADoorIsShutWhileThereIsNoIntake: the Door returns an error, so Alertmanager posts again and
// no alert is lost.
func TestADoorIsShutWhileThereIsNoIntake(t *testing.T) {
	var d intake.Door
	record := func() (intake.Result, error) {
		return d.Record(t.Context(), map[string]string{"alertname": "X", "node": "n1"}, remediations.StatusFiring, time.Now())
	}
	_, err := record()
	require.ErrorContains(t, err, "no Node can be written")
	d.Open(intake.Intake{Config: &remediations.Config{}, Node: func(string) *corev1.Node { return nil }})
	result, err := record()
	require.NoError(t, err)
	require.Equal(t, intake.NoPolicy, result, "the intake has looked at it")
	d.Close()
	_, err = record()
	require.Error(t, err)
}

// TestAPollTakesAnAlertAsAPostDoes: a poll keeps what the Node has recorded about the alert, also
// the repair that a person cancelled. An alert of a post that is still queued is newer than the
// poll's answer.
func TestAPollTakesAnAlertAsAPostDoes(t *testing.T) {
	api := &slowAPI{nodes: map[string]map[string]string{}, busy: map[string]bool{}}
	q := newQueue(t, api.write) // nothing is written until the queue runs
	in, n, now := newIntake(t, nil), nodeNamed("n1"), time.Unix(1700000000, 0).UTC()
	in.Node, in.Writer, in.Now = func(string) *corev1.Node { return n }, q, func() time.Time { return now }
	alert := func(status string, received time.Time) remediations.Alert {
		return in.Config.NewAlert(in.Config.Policies[0], about("n1"), status, now, received)
	}
	fires := alert(remediations.StatusFiring, now)
	waiting := func() remediations.Alert {
		value, ok := q.Waiting(n, fires.Key())
		require.True(t, ok)
		a, err := remediations.DecodeAlert(fires.Key(), *value)
		require.NoError(t, err)
		return a
	}

	ended := alert(remediations.StatusResolved, now.Add(-time.Hour))
	ended.Cancelled = &remediations.CancelledRepair{ID: "n7q4k2", At: now}
	n.Annotations = map[string]string{ended.Key(): ended.Encode()}
	taken, result := in.Adopt(n, fires)
	require.Equal(t, intake.Accepted, result)
	want := fires
	want.ReceivedAt, want.Cancelled = ended.ReceivedAt, ended.Cancelled
	require.Equal(t, want, taken)
	require.Equal(t, want, waiting())

	posted, err := in.Record(t.Context(), about("n1"), remediations.StatusResolved, now)
	require.NoError(t, err)
	require.Equal(t, intake.Accepted, posted)
	_, result = in.Adopt(n, fires)
	require.Equal(t, intake.Unchanged, result)
	require.Equal(t, remediations.StatusResolved, waiting().Status, "the end of the alert still waits")
	posted, err = in.Record(t.Context(), about("n1"), remediations.StatusFiring, now)
	require.NoError(t, err)
	require.Equal(t, intake.Accepted, posted, "control: a post is newer than what waits")
	require.Equal(t, remediations.StatusFiring, waiting().Status)
}

// TestAPollWaitsForNothing: a poll waits neither for a place in the queue, nor until this
// installation is in charge. A later poll brings the alert again.
func TestAPollWaitsForNothing(t *testing.T) {
	in, n := newIntake(t, nil), nodeNamed("n1")
	why, full := "no replica holds the Lease yet", false
	in.Charge = func() (string, bool) { return why, false }
	in.Writer = fullQueue{func() bool { return full }}
	in.Expected = func() { t.Error("a poll has asked Alertmanager already") }
	alert := in.Config.NewAlert(in.Config.Policies[0], about("n1"), remediations.StatusFiring, time.Unix(1700000000, 0), time.Unix(1700000000, 0))
	adopt := func() intake.Result { _, result := in.Adopt(n, alert); return result }
	require.False(t, adopt().Taken())
	why, full = "", true
	require.False(t, adopt().Taken())
	full = false
	require.Equal(t, intake.Accepted, adopt(), "control")
}

// fullQueue is a Writer that has a place if full returns false. Put, which waits for a place,
// fails: a poll must not call it.
type fullQueue struct{ full func() bool }

func (fullQueue) Put(context.Context, *corev1.Node, map[string]*string) error {
	return errors.New("a poll waits for a place")
}
func (q fullQueue) Offer(*corev1.Node, map[string]*string) (bool, error) { return !q.full(), nil }
func (fullQueue) Waiting(*corev1.Node, string) (*string, bool)           { return nil, false }
