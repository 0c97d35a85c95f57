package civosim

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"
)

const (
	cluster = "9c89d8b9-463d-45f2-8928-455eb3f3726a"
	region  = "LON1"
	apiKey  = "correct-horse-battery-staple"
)

// change is one call of Machines.
type change struct{ what, hostname, id, bootID string }

// machines reports every change on a channel.
type machines struct{ changes chan change }

func (m machines) Away(_ context.Context, in Instance) error {
	m.changes <- change{"away", in.Hostname, in.ID, ""}
	return nil
}

func (m machines) Reboot(_ context.Context, in Instance, bootID string, cured bool) error {
	what := "reboot"
	if !cured {
		what = "reboot without a cure"
	}
	m.changes <- change{what, in.Hostname, in.ID, bootID}
	return nil
}

func (m machines) Remove(_ context.Context, in Instance) error {
	m.changes <- change{"remove", in.Hostname, in.ID, ""}
	return nil
}

func (m machines) Add(_ context.Context, in Instance) error {
	m.changes <- change{"add", in.Hostname, in.ID, ""}
	return nil
}

func start(t *testing.T, adjust ...func(*Options)) (*Server, *civogo.Client, machines) {
	t.Helper()
	changes := machines{make(chan change, 16)}
	o := Options{
		ClusterID: cluster, Region: region, APIKey: apiKey, Machines: changes,
		Instances: []Instance{
			{ID: "i-1", Hostname: "node-1", Pool: "workers"},
			{ID: "i-10", Hostname: "node-10", Pool: "workers"},
			{ID: "i-g", Hostname: "gpu-1", Pool: "gpus"},
		},
	}
	for _, f := range adjust {
		f(&o)
	}
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, client(t, s, apiKey, region), changes
}

func client(t *testing.T, s *Server, key, in string) *civogo.Client {
	t.Helper()
	c, err := civogo.NewClientWithURL(key, s.URL(), in)
	require.NoError(t, err)
	return c
}

func next(t *testing.T, m machines) change {
	t.Helper()
	select {
	case c := <-m.changes:
		return c
	case <-time.After(time.Minute):
		require.FailNow(t, "Machines heard of nothing")
		return change{}
	}
}

func TestReadsHaveCivosForms(t *testing.T) {
	s, c, _ := start(t)

	list, err := c.ListKubernetesClusterInstances(cluster)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, []string{"i-1", "node-1", "ACTIVE"}, []string{list[0].ID, list[0].Hostname, list[0].Status})

	one, err := c.GetInstance("i-10")
	require.NoError(t, err)
	require.Equal(t, "node-10", one.Hostname)

	pools, err := c.ListKubernetesClusterPools(cluster)
	require.NoError(t, err)
	require.Len(t, pools, 2)
	require.Equal(t, "workers", pools[0].ID)
	require.Equal(t, 2, pools[0].Count)
	require.Equal(t, []string{"node-1", "node-10"}, pools[0].InstanceNames)
	require.Equal(t, "i-10", pools[0].Instances[1].ID)

	pool, err := c.GetKubernetesClusterPool(cluster, "gpus")
	require.NoError(t, err)
	require.Equal(t, 1, pool.Count)

	calls := s.Calls()
	require.Len(t, calls, 4)
	require.Equal(t, "GET", calls[0].Method)
	require.Equal(t, "/v2/kubernetes/clusters/"+cluster+"/instances", calls[0].Path)
	require.Equal(t, region, calls[0].Query.Get("region"))
	require.Empty(t, s.Done(Any), "reading changes nothing")
}

func TestRebootBringsTheMachineBack(t *testing.T) {
	at := time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC)
	s, c, changes := start(t, func(o *Options) { o.Now = func() time.Time { return at } })

	answer, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	require.EqualValues(t, civogo.ResultSuccess, answer.Result)
	require.Equal(t, change{"away", "node-1", "i-1", ""}, next(t, changes))
	first := next(t, changes)
	require.Equal(t, "reboot", first.what)
	require.Equal(t, "node-1", first.hostname)
	_, err = c.SoftRebootInstance("i-1")
	require.NoError(t, err)
	require.Equal(t, "away", next(t, changes).what)
	require.NotEqual(t, first.bootID, next(t, changes).bootID)

	calls := s.CallsTo("hard_reboots")
	require.Len(t, calls, 1)
	require.Equal(t, "/v2/instances/i-1/hard_reboots", calls[0].Path)
	require.JSONEq(t, `{"region":"LON1"}`, calls[0].Body)
	require.Equal(t, "hard reboot i-1", calls[0].Done)
	require.Equal(t, http.StatusOK, calls[0].Status)
	require.JSONEq(t, `{"result":"success"}`, calls[0].Answer)
	require.Equal(t, at, calls[0].At)
	require.Len(t, s.Done(SoftReboots), 1)
}

func TestRecycleBuildsAnotherMachineInThePool(t *testing.T) {
	for name, tc := range map[string]struct {
		rename func(Instance) string
		same   bool
	}{
		"new hostname":  {nil, false},
		"kept hostname": {func(old Instance) string { return old.Hostname }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, changes := start(t, func(o *Options) { o.Rename = tc.rename })
			_, err := c.RecycleKubernetesCluster(cluster, "node-1")
			require.NoError(t, err)

			changeOf := map[string]change{}
			for range 2 {
				is := next(t, changes)
				changeOf[is.what] = is
			}
			require.Equal(t, "i-1", changeOf["remove"].id)
			require.NotEqual(t, "i-1", changeOf["add"].id)
			require.Equal(t, tc.same, changeOf["add"].hostname == "node-1")

			all := s.Instances()
			require.Len(t, all, 3)
			require.Equal(t, Instance{ID: changeOf["add"].id, Hostname: changeOf["add"].hostname, Pool: "workers", Status: "ACTIVE", Replaces: "i-1"}, all[2])
			require.Equal(t, "civo://"+all[2].ID, all[2].ProviderID())
		})
	}
}

func TestPoolsAreScaled(t *testing.T) {
	s, c, changes := start(t)
	_, err := c.DeleteKubernetesClusterPoolInstance(cluster, "workers", "i-10")
	require.NoError(t, err)
	require.Equal(t, change{"remove", "node-10", "i-10", ""}, next(t, changes))
	require.Len(t, s.Instances(), 2, "a deletion is a scale-down")

	two, none := 2, 0
	pool, err := c.UpdateKubernetesClusterPool(cluster, "workers", &civogo.KubernetesClusterPoolUpdateConfig{Count: &two, Region: region})
	require.NoError(t, err)
	require.Equal(t, 2, pool.Count)
	require.Equal(t, "add", next(t, changes).what)
	_, err = c.UpdateKubernetesClusterPool(cluster, "workers", &civogo.KubernetesClusterPoolUpdateConfig{Count: &none})
	require.NoError(t, err)
	require.Len(t, s.Instances(), 1)
	pools, err := c.ListKubernetesClusterPools(cluster)
	require.NoError(t, err)
	require.Len(t, pools, 2, "an empty pool is still a pool")
}

func TestCloseStopsARebootUnderWay(t *testing.T) {
	s, c, changes := start(t, func(o *Options) { o.RebootTime = time.Hour })
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	require.Equal(t, "away", next(t, changes).what)
	s.Close()
	require.Empty(t, changes.changes)
}

func TestAwaitCallEndsWithItsContext(t *testing.T) {
	s, _, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.AwaitCall(ctx, func(Call) bool { return false })
	require.ErrorIs(t, err, context.Canceled)
}

type broken struct{ noMachines }

func (broken) Reboot(context.Context, Instance, string, bool) error {
	return errors.New("no such node")
}

func TestErrorsOfMachinesAreLogged(t *testing.T) {
	logged := make(chan struct{})
	_, c, _ := start(t, func(o *Options) {
		o.Machines = broken{}
		o.Logf = func(string, ...any) { close(logged) }
	})
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	<-logged
}

func TestNewNeedsWhatCallersMustPresent(t *testing.T) {
	_, err := New(Options{ClusterID: cluster, Region: region})
	require.ErrorContains(t, err, "API key")
}
