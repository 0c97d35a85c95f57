package kube_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/ledger"
)

// dock is a ledger's ConfigMap, which may be missing, and a replica that writes into it. It counts
// the replica's requests.
type dock struct {
	cluster  *fake.Clientset
	arrivals *kube.Arrivals
	patches  atomic.Int64
	away     atomic.Bool // whether the API server is not reachable
}

func newDock(t *testing.T, data map[string]string) *dock {
	t.Helper()
	d := &dock{cluster: fake.NewClientset()}
	if data != nil {
		d.make(t, data)
	}
	d.cluster.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		d.patches.Add(1)
		if d.away.Load() {
			return true, nil, errors.New("away")
		}
		return false, nil, nil
	})
	d.arrivals = kube.NewArrivals(d.cluster, "drydock", "ledger", "v1.2.3", clock.RealClock{}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.arrivals.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return d
}

func (d *dock) make(t *testing.T, data map[string]string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "ledger"}, Data: data}
	require.NoError(t, d.cluster.Tracker().Add(cm))
}

func (d *dock) data(t *testing.T) map[string]string {
	t.Helper()
	o, err := d.cluster.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "drydock", "ledger")
	require.NoError(t, err)
	return o.(*corev1.ConfigMap).Data
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAnArrivalIsInTheLedgerAndLeavesTheRestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDock(t, map[string]string{"v": "1", "slots": "[]"})
		require.Zero(t, d.arrivals.Last())
		began := time.Now()
		d.arrivals.Arrived()
		require.Equal(t, began, d.arrivals.Last())
		pass(time.Second)
		require.Equal(t, map[string]string{"v": "1", "slots": "[]", "arrival": began.UTC().Format(time.RFC3339)}, d.data(t))

		for range 100 { // a storm of posts, over ten seconds
			d.arrivals.Arrived()
			pass(100 * time.Millisecond)
		}
		require.EqualValues(t, 1, d.patches.Load(), "one write each half minute")
		last := d.arrivals.Last()
		pass(30 * time.Second)
		require.EqualValues(t, 2, d.patches.Load())
		require.Equal(t, last.UTC().Format(time.RFC3339), d.data(t)["arrival"], "and the last one is not forgotten")
		pass(time.Hour)
		require.EqualValues(t, 2, d.patches.Load(), "nothing new")
	})
}

func TestAnArrivalThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	for name, c := range map[string]struct{ before, after func(*testing.T, *dock) }{
		"there is no ledger yet": {func(*testing.T, *dock) {}, func(t *testing.T, d *dock) { d.make(t, map[string]string{"v": "1"}) }},
		"the API server is away": {func(t *testing.T, d *dock) { d.make(t, nil); d.away.Store(true) }, func(_ *testing.T, d *dock) { d.away.Store(false) }},
		"it holds what is no time": {func(t *testing.T, d *dock) {
			d.make(t, map[string]string{"arrival": "?"})
			d.away.Store(true)
		}, func(_ *testing.T, d *dock) { d.away.Store(false) }},
		"it holds a distant future": {func(t *testing.T, d *dock) {
			d.make(t, map[string]string{"arrival": "2999-01-01T00:00:00Z"})
			d.away.Store(true)
		}, func(_ *testing.T, d *dock) { d.away.Store(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDock(t, nil)
				c.before(t, d)
				began := time.Now()
				d.arrivals.Arrived()
				pass(2 * time.Minute)
				require.Less(t, d.patches.Load(), int64(30), "and nobody is besieged")
				require.Equal(t, began, d.arrivals.Last(), "the leader of this process knows it all the same")
				c.after(t, d)
				pass(6 * time.Second)
				require.Equal(t, began.UTC().Format(time.RFC3339), d.data(t)["arrival"])
			})
		})
	}
}

// TestALateArrivalTakesNothingBack: while this replica could not write, another replica wrote a
// later arrival, which stays.
func TestALateArrivalTakesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDock(t, nil)
		d.arrivals.Arrived()
		pass(time.Minute)
		later := time.Now().UTC().Format(time.RFC3339)
		d.make(t, map[string]string{"arrival": later})
		pass(time.Minute)
		require.Equal(t, later, d.data(t)["arrival"])
	})
}

// TestTheSelfTestIsAboutNoNode, whatever labels the alert has, and whatever policy matches it.
func TestTheSelfTestIsAboutNoNode(t *testing.T) {
	arrived := 0
	in := newIntake(t, lab.Shared(t).Client())
	in.Arrived = func() { arrived++ }
	m, err := labels.NewMatcher(labels.MatchEqual, "alertname", "DrydockSelfTest")
	require.NoError(t, err)
	in.Config.SelfTest = labels.Matchers{m}
	in.Config.ClusterLabel, in.Config.ClusterValue = "cluster", "prod"
	l := about("node-3")
	l["alertname"] = "DrydockSelfTest"
	for cluster, want := range map[string]intake.Result{"prod": intake.SelfTest, "other": intake.OtherCluster} {
		l["cluster"] = cluster
		version := node(t, "node-3").ResourceVersion
		result, err := in.Record(t.Context(), l, remediations.StatusFiring, time.Now())
		require.NoError(t, err)
		require.Equal(t, want, result)
		require.Equal(t, version, node(t, "node-3").ResourceVersion)
	}
	require.Equal(t, 1, arrived)
	in.Arrived = nil
	l["cluster"] = "prod"
	result, err := in.Record(t.Context(), l, remediations.StatusFiring, time.Now())
	require.NoError(t, err)
	require.Equal(t, intake.SelfTest, result, "nobody is told, and it is still none of a node's")
}

// TestALedgerThatIsSavedMeetsAnArrival on the real API server: the leader's save conflicts with the
// other replica's key. The repeated save keeps that key.
func TestALedgerThatIsSavedMeetsAnArrival(t *testing.T) {
	client := lab.Shared(t).Client()
	store := kube.LedgerStore{Client: client, Namespace: "default", Name: "arrivals"}
	first, err := store.Save(t.Context(), (&ledger.Ledger{}).Encode(), "")
	require.NoError(t, err)
	a := kube.NewArrivals(client, "default", "arrivals", "v1.2.3", clock.RealClock{}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	a.Arrived()
	var data map[string]string
	var version string
	require.Eventually(t, func() bool {
		data, version, err = store.Load(t.Context())
		return err == nil && data[ledger.KeyArrival] != ""
	}, 5*time.Minute, 20*time.Millisecond)
	_, err = store.Save(t.Context(), (&ledger.Ledger{}).Encode(), first)
	require.Error(t, err, "the version is another one")
	l, err := ledger.Decode(data)
	require.NoError(t, err)
	_, err = store.Save(t.Context(), l.Encode(), version)
	require.NoError(t, err)
	data, _, err = store.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.EncodeArrival(a.Last()), data[ledger.KeyArrival])
}
