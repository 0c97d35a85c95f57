package signs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/signs"
)

func TestLeasesThatBlameTheControlPath(t *testing.T) {
	for _, c := range []struct {
		stale, nodes int
		blind        bool
	}{
		{0, 0, false}, {1, 1, false}, {2, 2, false}, {3, 3, true}, {2, 3, false}, {3, 5, true}, {3, 6, false},
		{6, 10, true}, {5, 10, false}, {599, 1000, false}, {600, 1000, true},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.stale, c.nodes), func(t *testing.T) {
			h := &signs.Heartbeats{Nodes: c.nodes, Stale: c.stale}
			require.Equal(t, c.blind, h.Blind() != "")
		})
	}
	require.Empty(t, (*signs.Heartbeats)(nil).Blind(), "leases that nobody has read say nothing; Decide asks for them before it acts")
}

func TestLeaseIsFreshByTheClockThatReadIt(t *testing.T) {
	for name, c := range map[string]struct {
		renewed time.Duration
		fresh   bool
	}{
		"just renewed":                       {0, true},
		"at the end of its time":             {-40 * time.Second, true},
		"beyond it":                          {-41 * time.Second, false},
		"a kubelet's clock a little ahead":   {time.Minute, true},
		"a clock that is wrong: far ahead":   {time.Minute + time.Second, false},
		"a clock that is wrong: hours ahead": {3 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := signs.Lease{ReadAt: noon, RenewedAt: noon.Add(c.renewed), Duration: 40 * time.Second}
			require.Equal(t, c.fresh, l.Fresh())
			h := &signs.Heartbeats{}
			h.Count(l)
			require.Equal(t, 1, h.Nodes)
			require.Equal(t, !c.fresh, h.Stale == 1)
		})
	}
	require.False(t, (&signs.Lease{ReadAt: noon}).Fresh(), "a lease that is not there is not fresh")
}

// TestALeaseIsJudgedByItsMovement: the kubelet's clock may be wrong by any amount, but its renewals
// still arrive.
func TestALeaseIsJudgedByItsMovement(t *testing.T) {
	for what, behind := range map[string]time.Duration{"70 s behind": 70 * time.Second, "a day behind": 24 * time.Hour, "an hour ahead": -time.Hour} {
		t.Run(what, func(t *testing.T) {
			read := func(was signs.Lease, after, renewed time.Duration) signs.Lease {
				at := noon.Add(after)
				return signs.Lease{ReadAt: at, RenewedAt: noon.Add(renewed - behind), Duration: 40 * time.Second}.After(was)
			}
			first := read(signs.Lease{}, 5*time.Second, 0)
			require.Equal(t, signs.Unknown, signs.LeaseSays(first).Answer, "one reading cannot tell a wrong clock from a silent kubelet")
			require.False(t, first.Fresh())

			moved := read(first, 15*time.Second, 10*time.Second)
			require.Equal(t, signs.Well, signs.LeaseSays(moved).Answer, "it was renewed between two readings")
			require.True(t, moved.Fresh())

			stood := read(moved, 45*time.Second, 10*time.Second)
			require.True(t, stood.Fresh(), "the renewal may be 40 s old")
			stood = read(stood, 46*time.Second, 10*time.Second)
			require.Equal(t, signs.Unknown, signs.LeaseSays(stood).Answer)
			require.False(t, stood.Fresh())
			stood = read(stood, 56*time.Second, 10*time.Second)
			require.Equal(t, signs.Ill, signs.LeaseSays(stood).Answer, "it was watched for longer than a renewal is good for")

			again := read(stood, 10*time.Minute, 9*time.Minute)
			require.False(t, again.Fresh(), "it was renewed at some time between two readings that are far apart")
			require.Equal(t, signs.Unknown, signs.LeaseSays(again).Answer)
		})
	}
}
