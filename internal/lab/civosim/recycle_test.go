package civosim

import (
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"
)

// TestRecyclePhases: both machines are in the lists until the old one is gone, and the pool's count
// never changes.
func TestRecyclePhases(t *testing.T) {
	deletion, building := make(chan time.Time), make(chan time.Time)
	s, c, changes := start(t, func(o *Options) {
		o.DeleteTime, o.BuildTime = 1, 2
		o.Rename = func(old Instance) string { return old.Hostname }
		o.After = func(d time.Duration) <-chan time.Time {
			return map[time.Duration]chan time.Time{1: deletion, 2: building}[d]
		}
	})
	statuses := func() []string {
		pools, err := c.ListKubernetesClusterPools(cluster)
		require.NoError(t, err)
		require.Equal(t, 2, pools[0].Count)
		var of []string
		for _, in := range pools[0].Instances {
			of = append(of, in.Hostname+" "+in.Status)
		}
		return of
	}
	_, err := c.RecycleKubernetesCluster(cluster, "node-1")
	require.NoError(t, err)
	require.Equal(t, []string{"node-1 DELETING", "node-10 ACTIVE", "node-1 BUILDING"}, statuses())
	for name, call := range map[string]func() error{
		"rebooting what goes":  func() error { _, err := c.HardRebootInstance("i-1"); return err },
		"rebooting what comes": func() error { _, err := c.SoftRebootInstance(s.Instances()[3].ID); return err },
	} {
		require.ErrorContains(t, call(), "The instance is ", name)
	}
	require.Empty(t, changes.changes)

	deletion <- time.Time{}
	require.Equal(t, change{"remove", "node-1", "i-1", ""}, next(t, changes))
	require.Equal(t, []string{"node-10 ACTIVE", "node-1 BUILDING"}, statuses())
	building <- time.Time{}
	require.Equal(t, "add", next(t, changes).what)
	require.Equal(t, []string{"node-10 ACTIVE", "node-1 ACTIVE"}, statuses())

	list, err := c.ListKubernetesClusterInstances(cluster)
	require.NoError(t, err)
	require.True(t, list[2].CreatedAt.After(list[0].CreatedAt), "the successor is the younger one")
}

func TestACountIsWhatWasAskedFor(t *testing.T) {
	s, c, _ := start(t)
	_, err := c.DeleteKubernetesClusterPoolInstance(cluster, "workers", "i-10")
	require.NoError(t, err)
	s.Inject(ListPools, Pools("half told", func(p Pool) Pool {
		p.Count, p.Instances = p.Count+5, 0
		return p
	}))
	pools, err := c.ListKubernetesClusterPools(cluster)
	require.NoError(t, err)
	require.Equal(t, 6, pools[0].Count, "one was left, and the fault adds five")
	require.Empty(t, pools[0].Instances)
	pool, err := c.GetKubernetesClusterPool(cluster, "workers")
	require.NoError(t, err)
	require.Equal(t, 1, pool.Count)
}

func TestARebootCuresOnlyTheConfiguredInstances(t *testing.T) {
	_, c, changes := start(t, func(o *Options) {
		o.Cures = func(in Instance, op Op) bool { return in.Hostname == "node-10" || op == HardReboots }
	})
	for _, id := range []string{"i-1", "i-10"} {
		answer, err := c.SoftRebootInstance(id)
		require.NoError(t, err)
		require.EqualValues(t, civogo.ResultSuccess, answer.Result, "Civo did it, whatever it helped")
	}
	_, err := c.HardRebootInstance("i-1")
	require.NoError(t, err)
	// Both machines with the name node-1 come back, with boot IDs of their own.
	var back []string
	for range 6 {
		if is := next(t, changes); is.what != "away" {
			require.NotEmpty(t, is.bootID)
			back = append(back, is.what+" "+is.hostname)
		}
	}
	require.ElementsMatch(t, []string{"reboot without a cure node-1", "reboot node-10", "reboot node-1"}, back)
}

func TestAHookRunsForItsOperationAlone(t *testing.T) {
	s, c, _ := start(t)
	var ran []string
	s.On(Recycle, func() { ran = append(ran, s.CallsTo(Recycle)[0].Done) })
	_, err := c.HardRebootInstance("i-10")
	require.NoError(t, err)
	_, err = c.RecycleKubernetesCluster(cluster, "node-1")
	require.NoError(t, err)
	require.Len(t, ran, 1)
	require.Contains(t, ran[0], "recycle i-1 as ")
}

func TestARegionWithoutTheClusterAnswersLikeAMissingCluster(t *testing.T) {
	s, _, _ := start(t, func(o *Options) { o.OtherRegions = []string{"FRA1"} })
	_, err := client(t, s, apiKey, "FRA1").ListKubernetesClusterInstances(cluster)
	require.ErrorIs(t, err, civogo.DatabaseKubernetesClusterNotFoundError)
	_, err = client(t, s, apiKey, "FRA1").HardRebootInstance("i-1")
	require.ErrorIs(t, err, civogo.DatabaseInstanceNotFoundError)
	_, err = client(t, s, apiKey, "NYC1").HardRebootInstance("i-1")
	require.ErrorContains(t, err, "database_region_not_found")
}
