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

// change is one thing that Machines was told.
type change struct{ what, hostname, id, bootID string }

// machines reports every change on a channel.
type machines struct{ changes chan change }

func (m machines) Reboot(_ context.Context, in Instance, bootID string) error {
	m.changes <- change{"reboot", in.Hostname, in.ID, bootID}
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
	heard := machines{make(chan change, 16)}
	o := Options{
		ClusterID: cluster, Region: region, APIKey: apiKey, Machines: heard,
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
	return s, client(t, s, apiKey, region), heard
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
	case <-time.After(20 * time.Second):
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
	s, c, heard := start(t, func(o *Options) { o.Now = func() time.Time { return at } })

	answer, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	require.EqualValues(t, civogo.ResultSuccess, answer.Result)
	first := next(t, heard)
	require.Equal(t, "node-1", first.hostname)
	_, err = c.SoftRebootInstance("i-1")
	require.NoError(t, err)
	require.NotEqual(t, first.bootID, next(t, heard).bootID)

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
			s, c, heard := start(t, func(o *Options) { o.Rename = tc.rename })
			_, err := c.RecycleKubernetesCluster(cluster, "node-1")
			require.NoError(t, err)

			heardOf := map[string]change{}
			for range 2 {
				is := next(t, heard)
				heardOf[is.what] = is
			}
			require.Equal(t, "i-1", heardOf["remove"].id)
			require.NotEqual(t, "i-1", heardOf["add"].id)
			require.Equal(t, tc.same, heardOf["add"].hostname == "node-1")

			all := s.Instances()
			require.Len(t, all, 3)
			require.Equal(t, Instance{ID: heardOf["add"].id, Hostname: heardOf["add"].hostname, Pool: "workers", Status: "ACTIVE"}, all[2])
			require.Equal(t, "civo://"+all[2].ID, all[2].ProviderID())
		})
	}
}

func TestPoolsAreScaled(t *testing.T) {
	s, c, heard := start(t)
	_, err := c.DeleteKubernetesClusterPoolInstance(cluster, "workers", "i-10")
	require.NoError(t, err)
	require.Equal(t, change{"remove", "node-10", "i-10", ""}, next(t, heard))
	require.Len(t, s.Instances(), 2, "a deletion is a scale-down")

	two, none := 2, 0
	pool, err := c.UpdateKubernetesClusterPool(cluster, "workers", &civogo.KubernetesClusterPoolUpdateConfig{Count: &two, Region: region})
	require.NoError(t, err)
	require.Equal(t, 2, pool.Count)
	require.Equal(t, "add", next(t, heard).what)
	_, err = c.UpdateKubernetesClusterPool(cluster, "workers", &civogo.KubernetesClusterPoolUpdateConfig{Count: &none})
	require.NoError(t, err)
	require.Len(t, s.Instances(), 1)
	pools, err := c.ListKubernetesClusterPools(cluster)
	require.NoError(t, err)
	require.Len(t, pools, 2, "an empty pool is still a pool")
}

func TestRefusalsHaveCivosCodes(t *testing.T) {
	s, _, _ := start(t)
	for name, tc := range map[string]struct {
		key, region string
		call        func(*civogo.Client) error
		want        error
		text        string
	}{
		"wrong key": {
			key:  "another",
			call: func(c *civogo.Client) error { _, err := c.HardRebootInstance("i-1"); return err },
			want: civogo.AuthenticationError,
		},
		"wrong region": {
			region: "NYC1",
			call:   func(c *civogo.Client) error { _, err := c.ListKubernetesClusterInstances(cluster); return err },
			want:   civogo.CommonError, text: "database_region_not_found",
		},
		"unknown cluster": {
			call: func(c *civogo.Client) error { _, err := c.ListKubernetesClusterInstances("other"); return err },
			want: civogo.DatabaseKubernetesClusterNotFoundError,
		},
		"unknown instance": {
			call: func(c *civogo.Client) error { _, err := c.HardRebootInstance("i-2"); return err },
			want: civogo.DatabaseInstanceNotFoundError,
		},
		"unknown hostname": {
			call: func(c *civogo.Client) error { _, err := c.RecycleKubernetesCluster(cluster, "node"); return err },
			want: civogo.DatabaseKubernetesNodeNotFoundError,
		},
		"unknown pool": {
			call: func(c *civogo.Client) error {
				_, err := c.DeleteKubernetesClusterPoolInstance(cluster, "other", "i-1")
				return err
			},
			want: civogo.DatabaseClusterPoolNotFoundError,
		},
		"instance of another pool": {
			call: func(c *civogo.Client) error {
				_, err := c.DeleteKubernetesClusterPoolInstance(cluster, "gpus", "i-1")
				return err
			},
			want: civogo.DatabaseClusterPoolInstanceNotFoundError,
		},
	} {
		t.Run(name, func(t *testing.T) {
			key, in := apiKey, region
			if tc.key != "" {
				key = tc.key
			}
			if tc.region != "" {
				in = tc.region
			}
			err := tc.call(client(t, s, key, in))
			require.ErrorIs(t, err, tc.want)
			require.ErrorContains(t, err, tc.text)
			require.Empty(t, s.Done(Any))
		})
	}
}

func TestFaultsStrikeBeforeOrAfterTheWork(t *testing.T) {
	for name, tc := range map[string]struct {
		fault Fault
		done  int
		want  error // nil: some error
		fine  bool
	}{
		"server error":           {fault: ServerError(), want: civogo.InternalServerError},
		"server error afterward": {fault: After(ServerError()), done: 1, want: civogo.InternalServerError},
		"unauthorized":           {fault: Unauthorized(), want: civogo.AuthenticationError},
		"quota":                  {fault: Quota(), want: civogo.QuotaLimitReachedError},
		"page":                   {fault: HTML(http.StatusBadGateway), want: civogo.ResponseDecodeFailedError},
		"page afterward":         {fault: After(HTML(http.StatusOK)), done: 1},
		"cut":                    {fault: Cut()},
		"cut afterward":          {fault: After(Cut()), done: 1},
		"failed":                 {fault: Failed(), fine: true},
		"slow":                   {fault: Slow(time.Millisecond), done: 1, fine: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, _ := start(t)
			s.InjectNext(HardReboots, 1, tc.fault)
			answer, err := c.HardRebootInstance("i-1")
			switch {
			case tc.want != nil:
				require.ErrorIs(t, err, tc.want)
			case tc.fine:
				require.NoError(t, err)
				require.Equal(t, tc.done == 1, answer.Result == civogo.ResultSuccess)
			default:
				require.Error(t, err)
			}
			require.Len(t, s.Done(HardReboots), tc.done)
			require.Equal(t, tc.fault.String(), s.CallsTo(HardReboots)[0].Fault)

			_, err = c.HardRebootInstance("i-1")
			require.NoError(t, err, "it was for one call")
		})
	}
}

func TestPanicReasonPanicsCivogo(t *testing.T) {
	s, c, _ := start(t)
	s.Inject(HardReboots, PanicReason(http.StatusBadRequest))
	require.Panics(t, func() { _, _ = c.HardRebootInstance("i-1") })
	s.Heal(HardReboots)
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
}

func TestListFaultsSpringCivogosTrap(t *testing.T) {
	s, c, _ := start(t)
	s.Inject(ListInstances, Missing("node-1"))
	found, err := c.FindKubernetesClusterInstance(cluster, "node-1")
	require.NoError(t, err)
	require.Equal(t, "node-10", found.Hostname, "the trap that this fault is for")

	s.Heal()
	s.Inject(ListInstances, Twice("node-1"))
	list, err := c.ListKubernetesClusterInstances(cluster)
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.Equal(t, "node-1", list[3].Hostname)
	require.NotEqual(t, "i-1", list[3].ID)
}

func TestHangEndsWithTheSimulator(t *testing.T) {
	s, c, _ := start(t)
	s.Inject(HardReboots, After(Hang()))
	failed := make(chan error, 1)
	go func() {
		_, err := c.HardRebootInstance("i-1")
		failed <- err
	}()
	call, err := s.AwaitCall(t.Context(), func(c Call) bool { return c.Done == "hard reboot i-1" })
	require.NoError(t, err)
	require.Zero(t, call.Status, "it is not answered yet")
	s.Close()
	require.Error(t, <-failed)
	require.Equal(t, NoAnswer, s.Calls()[0].Status)
}

func TestOnRebootRunsBetweenWorkAndAnswer(t *testing.T) {
	s, c, _ := start(t)
	var seen Call
	s.OnReboot(func() { seen = s.Calls()[0] })
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	require.Equal(t, "hard reboot i-1", seen.Done)
	require.Zero(t, seen.Status)
}

func TestCloseStopsARebootUnderWay(t *testing.T) {
	s, c, heard := start(t, func(o *Options) { o.RebootTime = time.Hour })
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	s.Close()
	require.Empty(t, heard.changes)
}

func TestAwaitCallEndsWithItsContext(t *testing.T) {
	s, _, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.AwaitCall(ctx, func(Call) bool { return false })
	require.ErrorIs(t, err, context.Canceled)
}

type broken struct{ nobody }

func (broken) Reboot(context.Context, Instance, string) error { return errors.New("no such node") }

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
