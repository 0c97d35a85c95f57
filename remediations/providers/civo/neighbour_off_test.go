package civo

import (
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
)

// TestANeighbourThatIsOffDoesNotKeepAReplacementFromBeingProved: in a pool of three, i-11 replaces
// i-1, and i-10 is off.
func TestANeighbourThatIsOffDoesNotKeepAReplacementFromBeingProved(t *testing.T) {
	t.Parallel()
	fresh := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	old := fresh.Add(-time.Hour)
	at := func(id, status string, created time.Time) civogo.Instance {
		return civogo.Instance{ID: id, Hostname: id, Status: status, CreatedAt: created}
	}
	well, successor := at("i-9", active, old), at("i-11", active, fresh)
	const none = "node pool pool-1 has no new instance that is ACTIVE"
	for name, tc := range map[string]struct {
		pool    []civogo.Instance
		newest  time.Time
		missing string
	}{
		"off before, by its hypervisor":     {[]civogo.Instance{well, at("i-10", shutOff, old), successor}, old, ""},
		"stopped":                           {[]civogo.Instance{well, at("i-10", stopped, old), successor}, old, ""},
		"failed":                            {[]civogo.Instance{well, at("i-10", failed, old), successor}, old, ""},
		"on again":                          {[]civogo.Instance{well, at("i-10", active, old), successor}, old, ""},
		"the new one is BUILDING":           {[]civogo.Instance{well, at("i-10", shutOff, old), at("i-11", building, fresh)}, old, "has 1 ACTIVE instances, and needs 2; " + none},
		"the new one is off":                {[]civogo.Instance{well, at("i-10", shutOff, old), at("i-11", shutOff, fresh)}, old, "has 1 ACTIVE instances, and needs 2; " + none},
		"no new one, and it is on again":    {[]civogo.Instance{well, at("i-10", active, old)}, old, "has 2 ACTIVE instances, and needs 3; " + none},
		"it is being replaced as well":      {[]civogo.Instance{well, at("i-10", deleting, old), successor}, old, "has 2 ACTIVE instances, and needs 3"},
		"its own new one is not yet ACTIVE": {[]civogo.Instance{well, at("i-12", building, fresh), successor}, old, "has 2 ACTIVE instances, and needs 3"},
		"its own new one has failed":        {[]civogo.Instance{well, at("i-12", failed, fresh), successor}, old, "has 2 ACTIVE instances, and needs 3"},
		"Civo does not say which is new":    {[]civogo.Instance{well, at("i-10", shutOff, old), successor}, time.Time{}, "has 2 ACTIVE instances, and needs 3"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := before
			seen.PoolCount, seen.Newest = 3, tc.newest
			pool := civogo.KubernetesPool{ID: "pool-1", Count: 3}
			for _, in := range tc.pool {
				pool.Instances = append(pool.Instances, civogo.KubernetesInstance{ID: in.ID, Status: in.Status})
			}
			sim := provider(t)
			sim.Inject(civosim.ListInstances, civosim.Answer(200, tc.pool))
			sim.Inject(civosim.ListPools, civosim.Answer(200, []civogo.KubernetesPool{pool}))
			r := replaced(t, client(t, sim.URL()), seen)
			require.True(t, r.MachineGone)
			if tc.missing == "" {
				require.Empty(t, r.Missing)
				require.Len(t, r.Successors, 1)
				return
			}
			require.Contains(t, r.Missing, tc.missing)
		})
	}
}
