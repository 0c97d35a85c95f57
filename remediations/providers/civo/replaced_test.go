package civo

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

func replaced(t *testing.T, c *Client, b Before) remediations.Replacement {
	t.Helper()
	r, err := c.Replaced(t.Context(), b)
	require.NoError(t, err)
	require.LessOrEqual(t, len(r.Missing), 1000)
	return r
}

// TestAReplacementIsProvedStepByStep follows a replacement from the call to the end: the old
// machine DELETING, then gone and the new one BUILDING, then ACTIVE.
func TestAReplacementIsProvedStepByStep(t *testing.T) {
	t.Parallel()
	for name, rename := range map[string]func(civosim.Instance) string{
		"new hostname": nil, "kept hostname": func(old civosim.Instance) string { return old.Hostname },
	} {
		t.Run(name, func(t *testing.T) {
			// Each stage lasts until the test has seen it.
			deletion, built, joined := make(chan time.Time), make(chan time.Time), make(added)
			sim := provider(t, func(o *civosim.Options) {
				o.Rename, o.DeleteTime, o.BuildTime, o.Machines = rename, 1, 2, joined
				o.After = func(d time.Duration) <-chan time.Time {
					return map[time.Duration]chan time.Time{1: deletion, 2: built}[d]
				}
			})
			c := client(t, sim.URL())
			seen, err := c.Look(t.Context(), node1)
			require.NoError(t, err)
			r := replaced(t, c, seen)
			require.False(t, r.MachineGone, "nothing was done yet")
			require.Contains(t, r.Missing, "still has the old instance i-1")

			require.NoError(t, c.Recycle(t.Context(), node1, seen, nil))
			r = replaced(t, c, seen)
			require.False(t, r.MachineGone, "DELETING is not gone")
			require.Contains(t, r.Missing, `the old instance i-1, "DELETING"`)
			require.Contains(t, r.Missing, "has 1 ACTIVE instances, and needs 2")

			deletion <- time.Time{} // the new one is not yet built
			require.Eventually(t, func() bool { r = replaced(t, c, seen); return r.MachineGone }, time.Minute, time.Millisecond)
			require.Equal(t, "node pool pool-1 has 1 ACTIVE instances, and needs 2; node pool pool-1 has no new instance that is ACTIVE", r.Missing)
			require.Empty(t, r.Successors)

			built <- time.Time{}
			<-joined
			r = replaced(t, c, seen)
			require.Equal(t, remediations.Replacement{MachineGone: true, Successors: r.Successors}, r, "nothing is missing")
			require.Len(t, r.Successors, 1)
			require.NotEqual(t, "civo://i-1", r.Successors[0])
			i := slices.IndexFunc(sim.Instances(), func(in civosim.Instance) bool { return providerID(in.ID) == r.Successors[0] })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, rename != nil, sim.Instances()[i].Hostname == "node-1")
			requireRefused(t, c.Reboot(t.Context(), node1, nil), reasonNotFound, "no instance of that ID") // nor is the successor rebooted for it
		})
	}
}

// TestWhatProvesNothing: each lack by itself makes the proof incomplete.
func TestWhatProvesNothing(t *testing.T) {
	t.Parallel()
	type list = []map[string]any
	fresh := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	instance := func(id, status string, created time.Time) map[string]any {
		return map[string]any{"id": id, "hostname": id, "status": status, "created_at": created}
	}
	pool := func(id string, count int, members ...string) map[string]any {
		in := []any{}
		for _, m := range members {
			in = append(in, map[string]any{"id": m, "status": active})
		}
		return map[string]any{"id": id, "count": count, "instances": in}
	}
	other, younger := instance("i-10", active, fresh.Add(-time.Hour)), instance("i-11", active, fresh)
	seen := before
	seen.Newest = fresh.Add(-time.Hour)
	for name, tc := range map[string]struct {
		instances, pools list
		oldGone          bool
		missing          string
	}{
		"all well":            {list{other, younger}, list{pool("pool-1", 2, "i-10", "i-11")}, true, ""},
		"old one still there": {list{other, younger, instance("i-1", "SHUTOFF", fresh)}, list{pool("pool-1", 2, "i-10", "i-11")}, false, `the old instance i-1 still exists, "SHUTOFF"`},
		"old one in a pool":   {list{other, younger}, list{pool("pool-1", 2, "i-10", "i-11"), pool("pool-2", 1, "i-1")}, false, `node pool "pool-2" still has the old instance i-1`},
		"no instances":        {list{}, list{pool("pool-1", 2)}, false, "Civo lists no instances at all, which proves nothing"},
		"a list with holes":   {list{younger}, list{pool("pool-1", 2, "i-10", "i-11")}, false, "lacks 1 that its node pools have"},
		"a hole elsewhere":    {list{other, younger}, list{pool("pool-1", 2, "i-10", "i-11"), pool("pool-2", 1, "i-20")}, false, "lacks 1 that its node pools have"},
		"scaled down":         {list{other}, list{pool("pool-1", 1, "i-10")}, true, "was 2 and is now 1, so a person or program has scaled it"},
		"scaled up":           {list{other, younger}, list{pool("pool-1", 3, "i-10", "i-11")}, true, "and is now 3"},
		"pool gone":           {list{other, younger}, list{pool("pool-2", 2, "i-10", "i-11")}, true, "node pool pool-1 no longer exists"},
		"new one of another pool": {
			list{other, younger}, list{pool("pool-1", 2, "i-10"), pool("pool-2", 1, "i-11")}, true, "has 1 ACTIVE instances, and needs 2",
		},
		"new one BUILDING":      {list{other, instance("i-11", building, fresh)}, list{pool("pool-1", 2, "i-10", "i-11")}, true, "has 1 ACTIVE instances"},
		"whole, but none young": {list{other, instance("i-11", active, seen.Newest)}, list{pool("pool-1", 2, "i-10", "i-11")}, true, "has no new instance that is ACTIVE"},
		"one too many":          {list{other, younger, instance("i-12", active, fresh)}, list{pool("pool-1", 2, "i-10", "i-11", "i-12")}, true, "has 3 ACTIVE instances, and needs 2"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			sim.Inject(civosim.ListInstances, civosim.Answer(200, tc.instances))
			sim.Inject(civosim.ListPools, civosim.Answer(200, tc.pools))
			r := replaced(t, client(t, sim.URL()), seen)
			require.Equal(t, tc.oldGone, r.MachineGone)
			if tc.missing == "" {
				require.Empty(t, r.Missing)
				return
			}
			require.Contains(t, r.Missing, tc.missing)
		})
	}
}

// TestCivoDoesNotSayWhenTheyWereCreated: the proof works without, and no machine is named as the
// successor.
func TestCivoDoesNotSayWhenTheyWereCreated(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	sim.Inject(civosim.ListInstances, civosim.Answer(200, []civogo.Instance{{ID: "i-10", Status: active}, {ID: "i-11", Status: active}}))
	sim.Inject(civosim.ListPools, civosim.Answer(200, []civogo.KubernetesPool{{ID: "pool-1", Count: 2, Instances: []civogo.KubernetesInstance{{ID: "i-10"}, {ID: "i-11"}}}}))
	require.Equal(t, remediations.Replacement{MachineGone: true}, replaced(t, client(t, sim.URL()), before))
}

func TestARecordWithoutItsBeforeProvesNothing(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	for _, b := range []Before{{}, {InstanceID: "i-1", PoolID: "pool-1"}, {InstanceID: "i-1", PoolCount: 1}, {PoolID: "pool-1", PoolCount: 1}} {
		_, err := c.Replaced(t.Context(), b)
		requireRefused(t, err, reasonNotFound, "the record on the Node lacks")
	}
	require.Empty(t, sim.Calls())
}

// added signals when a machine joins.
type added chan struct{}

func (added) Away(context.Context, civosim.Instance) error                 { return nil }
func (added) Reboot(context.Context, civosim.Instance, string, bool) error { return nil }
func (added) Remove(context.Context, civosim.Instance) error               { return nil }

func (a added) Add(ctx context.Context, _ civosim.Instance) error {
	select {
	case a <- struct{}{}:
	case <-ctx.Done():
	}
	return nil
}
