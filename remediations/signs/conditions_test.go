package signs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/signs"
)

func disk(staleAfter time.Duration) signs.Sign {
	return signs.Sign{Kind: signs.Condition, Name: "DiskPressure", Status: "True", StaleAfter: staleAfter}
}

// withCondition returns a node whose condition changed, and was confirmed, that long before noon. A
// negative duration means that the Node does not have that time.
func withCondition(kind string, status corev1.ConditionStatus, changed, confirmed time.Duration) *corev1.Node {
	n := bare("n1")
	c := corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status}
	if changed >= 0 {
		c.LastTransitionTime = metav1.NewTime(noon.Add(-changed))
	}
	if confirmed >= 0 {
		c.LastHeartbeatTime = metav1.NewTime(noon.Add(-confirmed))
	}
	n.Status.Conditions = append(n.Status.Conditions, c)
	return n
}

// TestWhenTheFirstConditionBecomesTooOld: only conditions that are still valid count. A condition
// that the Node does not have, or whose age does not count, never becomes too old.
func TestWhenTheFirstConditionBecomesTooOld(t *testing.T) {
	const never = time.Duration(-1)
	n := withCondition("DiskPressure", corev1.ConditionTrue, 0, time.Minute)
	memory := signs.Sign{Kind: signs.Condition, Name: "MemoryPressure", Status: "True", StaleAfter: time.Hour}
	both := withCondition("MemoryPressure", corev1.ConditionTrue, 0, 0)
	both.Status.Conditions = append(both.Status.Conditions, n.Status.Conditions[1])
	for name, c := range map[string]struct {
		asked []signs.Sign
		node  *corev1.Node
		in    time.Duration
	}{
		"one":                           {[]signs.Sign{disk(5 * time.Minute)}, n, 4 * time.Minute},
		"at this moment":                {[]signs.Sign{disk(time.Minute)}, n, 0},
		"too old already":               {[]signs.Sign{disk(time.Minute - 1)}, n, never},
		"its age does not count":        {[]signs.Sign{disk(0)}, withCondition("DiskPressure", corev1.ConditionTrue, 0, 0), never},
		"no condition":                  {[]signs.Sign{{Kind: signs.NotReady, Name: "DiskPressure", StaleAfter: time.Hour}}, n, never},
		"the Node does not have it":     {[]signs.Sign{disk(5 * time.Minute)}, bare("n1"), never},
		"the Node does not say when":    {[]signs.Sign{disk(5 * time.Minute)}, withCondition("DiskPressure", corev1.ConditionTrue, 0, -1), never},
		"the first of two":              {[]signs.Sign{disk(5 * time.Minute), memory}, both, 4 * time.Minute},
		"the second of two":             {[]signs.Sign{memory, disk(5 * time.Minute)}, both, 4 * time.Minute},
		"one is too old, the other not": {[]signs.Sign{memory, disk(1)}, both, time.Hour},
	} {
		want := noon.Add(c.in)
		if c.in == never {
			want = time.Time{}
		}
		require.Equal(t, want, signs.StaleFrom(c.asked, c.node, noon), name)
	}
	old := withCondition("DiskPressure", corev1.ConditionTrue, 0, -1)
	require.Zero(t, signs.StaleFrom([]signs.Sign{disk(time.Hour)}, old, time.Time{}), "a Node that does not say when, at no known time")
}

// TestWhichSignHasBeenIllSince: it is a condition that has not changed since then. Ready counts,
// too.
func TestWhichSignHasBeenIllSince(t *testing.T) {
	notReady := bare("n1")
	notReady.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon)}
	named := signs.Sign{Kind: signs.NotReady, Name: "DiskPressure"}
	for name, c := range map[string]struct {
		asked []signs.Sign
		node  *corev1.Node
		saw   string
	}{
		"ill for a minute":           {[]signs.Sign{disk(0)}, withCondition("DiskPressure", corev1.ConditionTrue, time.Minute, 0), "DiskPressure is True"},
		"ill since this moment":      {[]signs.Sign{disk(0)}, withCondition("DiskPressure", corev1.ConditionTrue, 0, 0), "DiskPressure is True"},
		"well":                       {[]signs.Sign{disk(0)}, withCondition("DiskPressure", corev1.ConditionFalse, time.Minute, 0), ""},
		"unknown":                    {[]signs.Sign{disk(0)}, withCondition("DiskPressure", corev1.ConditionUnknown, time.Minute, 0), ""},
		"the Node does not say when": {[]signs.Sign{disk(0)}, withCondition("DiskPressure", corev1.ConditionTrue, -1, 0), ""},
		"the Node does not have it":  {[]signs.Sign{disk(0)}, bare("n1"), ""},
		"not Ready":                  {[]signs.Sign{named}, notReady, "Ready is False"},
		"another kind of sign":       {[]signs.Sign{{Kind: signs.MissingGPUs, Name: "Ready"}}, notReady, ""},
		"after one that is well":     {[]signs.Sign{disk(0), named}, notReady, "Ready is False"},
		"after one of another kind":  {[]signs.Sign{{Kind: signs.StaleLease}, named}, notReady, "Ready is False"},
	} {
		got := signs.IllSince(c.asked, c.node, noon)
		require.Equal(t, c.saw != "", got != "", name)
		require.Contains(t, got, c.saw, name)
	}
	later := withCondition("DiskPressure", corev1.ConditionTrue, 0, 0)
	require.Empty(t, signs.IllSince([]signs.Sign{disk(0)}, later, noon.Add(-time.Second)), "it changed after the moment")
	gpus := bare("n1")
	gpus.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon)
	gpus.Labels = map[string]string{signs.GPUCountLabel: "8"}
	gpus.Status.Allocatable = corev1.ResourceList{signs.GpuResource: resource.MustParse("7")}
	missing := signs.Sign{Kind: signs.MissingGPUs, Name: string(corev1.NodeReady)}
	require.Equal(t, signs.Ill, missing.Ask(gpus).Answer)
	require.Empty(t, signs.IllSince([]signs.Sign{missing}, gpus, noon), "no condition says since when GPUs are missing")
}

// TestACureNeedsReady: Whole adds NotReady to a witness without it, and does not add it twice.
func TestACureNeedsReady(t *testing.T) {
	ready := signs.Sign{Kind: signs.NotReady}
	require.Equal(t, []signs.Sign{disk(0), {Kind: signs.NotReady, Network: "kube-system/cni"}}, (&signs.Witness{Signs: []signs.Sign{disk(0)}, Network: "kube-system/cni"}).Whole())
	require.Equal(t, []signs.Sign{ready, disk(0)}, (&signs.Witness{Signs: []signs.Sign{ready, disk(0)}}).Whole())
}

// TestWhatALeaseSaysOfItsClock: if the lease is renewed in time and its renewal time does not show
// this, the node's clock is wrong. For a lease that never changed, either clock may be wrong.
func TestWhatALeaseSaysOfItsClock(t *testing.T) {
	const duration, wrong, future = 40 * time.Second, "by the node's clock, which is wrong", "in the future"
	for name, c := range map[string]struct {
		age    time.Duration
		moves  bool
		answer signs.Answer
		wrong  bool
		future bool
	}{
		"in time":                {duration, true, signs.Well, false, false},
		"old, and moving":        {duration + 1, true, signs.Well, true, false},
		"as far ahead as may be": {-signs.LeaseAhead, true, signs.Well, false, false},
		"far ahead, and moving":  {-signs.LeaseAhead - 1, true, signs.Well, true, false},
		"far ahead, not moving":  {-signs.LeaseAhead - 1, false, signs.Unknown, false, true},
		"old, not moving":        {duration + 1, false, signs.Unknown, false, false},
	} {
		l := signs.Lease{ReadAt: noon, RenewedAt: noon.Add(-c.age), Duration: duration}
		if c.moves {
			l.MovedFrom = noon.Add(-duration)
		}
		got := signs.LeaseSays(l)
		require.Equal(t, c.answer, got.Answer, name)
		if c.wrong {
			require.Contains(t, got.Saw, wrong, name)
		} else {
			require.NotContains(t, got.Saw, wrong, name)
		}
		if c.future {
			require.Contains(t, got.Saw, future, name)
		} else {
			require.NotContains(t, got.Saw, future, name)
		}
	}
}

// TestALeaseStandsWhenItsRenewalWasReadForLongerThanItLasts: the renewal time must not change in
// between.
func TestALeaseStandsWhenItsRenewalWasReadForLongerThanItLasts(t *testing.T) {
	old := signs.Lease{ReadAt: noon, RenewedAt: noon.Add(-time.Hour), Duration: 40 * time.Second}
	stood := func(d time.Duration, change func(l *signs.Lease)) bool {
		l := old
		l.StoodFrom = noon.Add(-d)
		change(&l)
		return l.Stands()
	}
	asIs := func(*signs.Lease) {}
	require.True(t, stood(40*time.Second+1, asIs))
	require.False(t, stood(40*time.Second, asIs))
	require.False(t, stood(time.Minute, func(l *signs.Lease) { l.MovedFrom = noon }))
	require.False(t, stood(time.Minute, func(l *signs.Lease) { l.StoodFrom = time.Time{} }))

	first := signs.Lease{ReadAt: noon}.After(signs.Lease{})
	require.Equal(t, noon, first.StoodFrom, "a lease that was never renewed stands from its first reading")
	require.Zero(t, first.MovedFrom)
}

// TestTheOldestReadingIsOfTheOldest: only readings that count are compared. A reading without a
// time counts as unread.
func TestTheOldestReadingIsOfTheOldest(t *testing.T) {
	lease, provider := signs.Sign{Kind: signs.StaleLease}, signs.Sign{Kind: signs.NotRunning}
	early, late := noon.Add(-time.Minute), noon
	for _, at := range [][]time.Time{{early, late}, {late, early}} {
		read := map[signs.Sign]signs.Testimony{lease: {Answer: signs.Well, At: at[0]}, provider: {Answer: signs.Well, At: at[1]}}
		w := signs.Weigh([]signs.Sign{lease, provider}, bare("n1"), read, time.Time{}, noon)
		require.Equal(t, early, w.Oldest)
		require.True(t, w.Well)
	}
	w := signs.Weigh([]signs.Sign{lease}, bare("n1"), map[signs.Sign]signs.Testimony{lease: {Answer: signs.Well}}, time.Time{}, noon)
	require.True(t, w.Unread)
	require.False(t, w.Well)
}

// TestAPodWithoutADaemonSetHasNothingToRead: the answer names the key of the configuration that is
// missing.
func TestAPodWithoutADaemonSetHasNothingToRead(t *testing.T) {
	w := signs.Weigh([]signs.Sign{{Kind: signs.DaemonSetPod, From: "network.daemonSet"}}, bare("n1"), nil, noon, noon)
	require.False(t, w.Unread)
	require.Contains(t, w.Saw[0], "network.daemonSet is not configured")
	pod := signs.Sign{Kind: signs.DaemonSetPod, Name: "kube-system/cni"}
	w = signs.Weigh([]signs.Sign{pod}, bare("n1"), map[signs.Sign]signs.Testimony{pod: {Answer: signs.Well, Saw: "it runs", At: noon}}, noon, noon)
	require.Equal(t, []string{"it runs"}, w.Saw)
}
