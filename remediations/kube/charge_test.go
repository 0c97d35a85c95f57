package kube_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	pointer "k8s.io/utils/ptr"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
)

// harbour is a cluster with the Lease that installations compete for. Each write gives the Lease a
// new version, as an API server does.
type harbour struct {
	t       *testing.T
	cluster *fake.Clientset
	version int
	mu      sync.Mutex
	fails   map[string]error // by verb
}

func newHarbour(t *testing.T, lease *coordinationv1.Lease) *harbour {
	t.Helper()
	h := &harbour{t: t, cluster: fake.NewClientset(), fails: map[string]error{}}
	if lease != nil {
		require.NoError(t, h.cluster.Tracker().Add(lease))
	}
	h.cluster.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if err := h.fails[a.GetVerb()]; err != nil {
			return true, nil, err
		}
		if u, ok := a.(clienttesting.UpdateAction); ok && a.GetVerb() == "update" {
			h.version++
			u.GetObject().(*coordinationv1.Lease).ResourceVersion = string(rune('a' + h.version%26))
		}
		return false, nil, nil
	})
	return h
}

func (h *harbour) fail(verb string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fails[verb] = err
}

func (h *harbour) holder() string {
	l, err := h.cluster.CoordinationV1().Leases("kube-system").Get(h.t.Context(), "drydock", metav1.GetOptions{})
	require.NoError(h.t, err)
	return pointer.Deref(l.Spec.HolderIdentity, "")
}

// run runs a replica of the installation until stop is called. lead makes it the leader.
func (h *harbour) run(identity string) (c *kube.Charge, lead, stop func()) {
	elected := make(chan struct{})
	c = &kube.Charge{
		Client: h.cluster, Lease: types.NamespacedName{Namespace: "kube-system", Name: "drydock"}, Identity: identity, Elected: elected, Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	return c, sync.OnceFunc(func() { close(elected) }), sync.OnceFunc(func() { cancel(); require.NoError(h.t, <-ended) })
}

// made returns the Lease as the chart creates it.
func made() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "drydock", UID: "u", ResourceVersion: "1"}}
}

// TestOneInstallationIsInChargeOfTheCluster: the installation that leads first is in charge, with
// all of its replicas, and each later leader of it is at once. Another installation takes over only
// when the Lease has not changed for its duration and a margin.
func TestOneInstallationIsInChargeOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t, made())
		first, firstLeads, firstStops := h.run("a/drydock")
		beside, besideLeads, besideStops := h.run("a/drydock")
		other, otherLeads, otherStops := h.run("b/drydock")
		defer besideStops()
		defer otherStops()
		time.Sleep(time.Minute)
		for _, c := range []*kube.Charge{first, beside, other} {
			require.Contains(t, c.Lacking(), "no replica holds Lease kube-system/drydock yet", "nobody leads")
		}
		firstLeads()
		time.Sleep(11 * time.Second)
		otherLeads()
		time.Sleep(time.Hour)
		require.Empty(t, first.Lacking())
		require.Empty(t, beside.Lacking(), "it is of the same installation")
		require.Equal(t, `another Drydock is in charge of the cluster: "a/drydock" holds Lease kube-system/drydock`, other.Lacking())

		firstStops()
		besideLeads()
		time.Sleep(time.Second)
		require.Empty(t, beside.Lacking(), "the next leader of the installation")
		time.Sleep(time.Hour)
		require.NotEmpty(t, other.Lacking())

		besideStops()
		for range 65 { // the Lease is valid for 40 s, and may be taken 30 s later
			require.NotEmpty(t, other.Lacking())
			time.Sleep(time.Second)
		}
		require.NotEmpty(t, beside.Lacking(), "long before another one takes the Lease")
		time.Sleep(30 * time.Second)
		require.Empty(t, other.Lacking())
		require.Equal(t, "b/drydock", h.holder())
	})
}

// TestAClockThatIsWrongTakesNoLease: only what this process has observed counts, and not the times
// that the Lease contains.
func TestAClockThatIsWrongTakesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := made()
		old.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: pointer.To("a/drydock"), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}, LeaseDurationSeconds: pointer.To[int32](120),
		}
		h := newHarbour(t, old)
		c, lead, stop := h.run("b/drydock")
		defer stop()
		lead()
		time.Sleep(145 * time.Second)
		require.NotEmpty(t, c.Lacking(), "the holder says that it may be silent for 120 s")
		time.Sleep(20 * time.Second)
		require.Empty(t, c.Lacking(), "the control")
	})
}

// TestALeaseThatCannotBeReadOrWrittenHolds: the error names what is missing. If the Lease was never
// held, Drydock holds at once, and otherwise when the last renewal is too old. It takes the Lease
// again as soon as possible.
func TestALeaseThatCannotBeReadOrWrittenHolds(t *testing.T) {
	forbidden := func(verb string) error {
		return apierrors.NewForbidden(coordinationv1.Resource("leases"), "drydock", errors.New("User cannot "+verb+" it"))
	}
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		verb  string
		err   error
		says  string
	}{
		"no right to read it":       {made(), "get", forbidden("get"), "User cannot get it"},
		"no right to write it":      {made(), "update", forbidden("update"), "User cannot update it"},
		"no Lease, and none made":   {nil, "create", forbidden("create"), "Lease kube-system/drydock does not exist (the chart creates it), and Drydock cannot create it"},
		"an API server that is ill": {made(), "get", errors.New("away"), "reading Lease kube-system/drydock"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarbour(t, tc.lease)
				h.fail(tc.verb, tc.err)
				c, lead, stop := h.run("a/drydock")
				defer stop()
				lead()
				time.Sleep(time.Minute)
				require.Contains(t, c.Lacking(), tc.says)
				h.fail(tc.verb, nil)
				time.Sleep(3 * time.Second)
				require.Empty(t, c.Lacking(), "the control")
				if tc.verb == "create" {
					return
				}
				h.fail(tc.verb, tc.err)
				time.Sleep(25 * time.Second)
				require.Empty(t, c.Lacking(), "the last renewal counts")
				time.Sleep(30 * time.Second)
				require.Contains(t, c.Lacking(), tc.says)
			})
		})
	}
}

// TestAnAlertWaitsForTheFirstLeader: while no installation is in charge, or that is unknown, posts
// are refused, so that Alertmanager sends them again.
func TestAnAlertWaitsForTheFirstLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
		h := newHarbour(t, made())
		c, lead, stop := h.run("a/drydock")
		defer stop()
		other, _, otherStops := h.run("b/drydock")
		defer otherStops()
		record := func(c *kube.Charge) (intake.Result, error) {
			in := newIntake(t, fake.NewClientset(n))
			in.Node = func(string) *corev1.Node { return n }
			in.Charge = c.Lacks
			return in.Record(t.Context(), about("n1"), remediations.StatusFiring, time.Now())
		}
		_, err := record(&kube.Charge{Lease: types.NamespacedName{Namespace: "kube-system", Name: "drydock"}, Clock: clock.RealClock{}})
		require.ErrorContains(t, err, "not in charge of the cluster yet: Lease kube-system/drydock has not been read yet")
		time.Sleep(time.Second)
		for _, replica := range []*kube.Charge{c, other} {
			_, err = record(replica)
			require.ErrorContains(t, err, "not in charge of the cluster yet: no replica holds Lease kube-system/drydock yet")
		}
		lead()
		time.Sleep(11 * time.Second)
		result, err := record(c)
		require.NoError(t, err)
		require.Equal(t, intake.Accepted, result)
		result, err = record(other)
		require.NoError(t, err)
		require.Equal(t, intake.NotInCharge, result)

		h.fail("get", errors.New("away"))
		time.Sleep(time.Minute)
		for _, replica := range []*kube.Charge{c, other} {
			_, err = record(replica)
			require.ErrorContains(t, err, "reading Lease kube-system/drydock")
		}
	})
}

// TestWhoIsNotInChargeWritesNoAlert, neither from a post, nor from a poll, nor from the queue. The
// self-test's alert still arrives, because it shows that posts reach this installation.
func TestWhoIsNotInChargeWritesNoAlert(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}}
	client := fake.NewClientset(n)
	in := newIntake(t, client)
	in.Node = func(string) *corev1.Node { return n }
	lacking, another := "another Drydock is in charge of the cluster", true
	in.Charge = func() (string, bool) { return lacking, another }
	adopted, poll := 0, in
	poll.Writer = intake.Direct(func(context.Context, *corev1.Node, map[string]*string) error { adopted++; return nil })
	alert := in.Config.NewAlert(in.Config.Policies[0], about("n1"), remediations.StatusFiring, time.Now(), time.Now())
	for _, want := range []intake.Result{intake.NotInCharge, intake.Accepted} {
		result, err := in.Record(t.Context(), about("n1"), remediations.StatusFiring, time.Now())
		require.NoError(t, err)
		require.Equal(t, want, result)
		require.Equal(t, lacking == "", len(client.Actions()) > 0)
		_, result = poll.Adopt(n, alert)
		require.Equal(t, lacking == "", result.Taken())
		lacking, another = "", false
	}
	require.Equal(t, 1, adopted)

	c := &kube.Charge{Lease: types.NamespacedName{Namespace: "kube-system", Name: "drydock"}, Clock: clock.RealClock{}}
	written := 0
	write := c.Guarding(func(context.Context, string, types.UID, map[string]*string) error { written++; return nil })
	require.Error(t, write(t.Context(), "n1", "uid", nil))
	require.NoError(t, c.While(func(context.Context) error { written++; return nil })(t.Context()))
	require.Zero(t, written)
}
