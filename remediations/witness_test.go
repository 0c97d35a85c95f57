package remediations_test

import (
	"testing"
	"time"

	. "drydock.dev/drydock/remediations"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/scene"
)

// TestLeaseAsAWitness: a lease says nothing where it was never renewed, or by a clock that is wrong.
func TestLeaseAsAWitness(t *testing.T) {
	const duration = 40 * time.Second
	for name, c := range map[string]struct {
		age  time.Duration // of the renewal when the lease was read
		want Answer
		saw  string
	}{
		"renewed a moment ago":       {time.Second, Well, "renewed at 2026-03-04T11:59:59Z"},
		"just not stale":             {duration, Well, "renewed at"},
		"stale":                      {duration + 1, Ill, "renewed at"},
		"ahead as far as clocks are": {-LeaseAhead, Well, "renewed at"},
		"from the future":            {-LeaseAhead - 1, Unknown, "in the future"},
	} {
		l := Lease{ReadAt: scene.Noon, RenewedAt: scene.Noon.Add(-c.age), Duration: duration}
		got := LeaseSays(l)
		require.Equal(t, c.want, got.Answer, name)
		require.Contains(t, got.Saw, c.saw, name)
		require.Equal(t, scene.Noon, got.At, name)
	}
	never := LeaseSays(Lease{ReadAt: scene.Noon, Duration: duration})
	require.Equal(t, Unknown, never.Answer)
	require.Contains(t, never.Saw, "never renewed")
}

func TestConditionSaysSinceWhen(t *testing.T) {
	n := scene.Bare("n1")
	sign := Sign{Kind: SignNotReady}
	require.Equal(t, "Ready is True", sign.Ask(n).Saw)
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(scene.Noon)
	require.Equal(t, "Ready is True since 2026-03-04T12:00:00Z", sign.Ask(n).Saw)
	n.Status.Conditions = nil
	require.Equal(t, Unknown, sign.Ask(n).Answer)
}

func TestConditionAsAWitness(t *testing.T) {
	sign := Sign{Kind: SignCondition, Name: "DiskPressure", Status: "True"}
	for status, want := range map[corev1.ConditionStatus]Answer{
		corev1.ConditionTrue: Ill, corev1.ConditionFalse: Well, corev1.ConditionUnknown: Unknown,
	} {
		n := scene.Bare("n1")
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "DiskPressure", Status: status})
		require.Equal(t, want, sign.Ask(n).Answer, status)
	}
	unknown := Sign{Kind: SignCondition, Name: "DiskPressure", Status: "Unknown"}
	n := scene.Bare("n1")
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "DiskPressure", Status: corev1.ConditionUnknown})
	require.Equal(t, Ill, unknown.Ask(n).Answer, "a policy may ask for Unknown")
}

// TestSignsAreWeighedTogether: one that says ill is enough, and all must say well.
func TestSignsAreWeighedTogether(t *testing.T) {
	ready, lease, provider := Sign{Kind: SignNotReady}, Sign{Kind: SignStaleLease}, Sign{Kind: SignNotRunning}
	said := func(lease, provider Answer) map[Sign]Testimony {
		read := map[Sign]Testimony{}
		for sign, a := range map[Sign]Answer{{Kind: SignStaleLease}: lease, {Kind: SignNotRunning}: provider} {
			if a != "" {
				read[sign] = Testimony{Answer: a, At: scene.Noon}
			}
		}
		if lease != "" {
			read[Sign{Kind: SignStaleLease}] = Testimony{Answer: lease, At: scene.Noon.Add(-time.Second)}
		}
		return read
	}
	all := []Sign{ready, lease, provider}
	for name, c := range map[string]struct {
		lease, provider   Answer
		ill, well, unread bool
	}{
		"all are well":     {Well, Well, false, true, false},
		"one is ill":       {Ill, Well, true, false, false},
		"one is not known": {Well, Unknown, false, false, false},
		"one was not read": {"", Well, false, false, true},
	} {
		w := Weigh(all, scene.Bare("n1"), said(c.lease, c.provider), scene.Noon.Add(-time.Second))
		require.Equal(t, []bool{c.ill, c.well, c.unread}, []bool{w.Ill, w.Well, w.Unread}, name)
		require.Equal(t, c.lease != "", w.Oldest.Before(scene.Noon), name)
		require.False(t, w.Oldest.IsZero(), name)
	}
	require.True(t, Weigh(all, scene.Bare("n1"), said(Well, Well), scene.Noon).Unread, "what was read before that is not counted")
	require.Zero(t, Weigh([]Sign{ready}, scene.Bare("n1"), nil, scene.Noon).Oldest, "the Node shows it")
}

// TestConditionThatANodeDoesNotHaveIsNoData: beside another condition of the list it is not counted; alone it proves nothing.
func TestConditionThatANodeDoesNotHaveIsNoData(t *testing.T) {
	a, b := Sign{Kind: SignCondition, Name: "KernelReady", Status: "False"}, Sign{Kind: SignCondition, Name: "XfsShutdown", Status: "True"}
	ready := Sign{Kind: SignNotReady}
	for name, c := range map[string]struct {
		signs     []Sign
		has       map[corev1.NodeConditionType]corev1.ConditionStatus
		ill, well bool
		saw       int
	}{
		"one is well, the other is absent":                 {[]Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"KernelReady": "True"}, false, true, 1},
		"one is ill, the other is absent":                  {[]Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"XfsShutdown": "True"}, true, false, 1},
		"one is well, the other is Unknown":                {[]Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"KernelReady": "True", "XfsShutdown": "Unknown"}, false, false, 2},
		"one is well, the other is ill":                    {[]Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"KernelReady": "True", "XfsShutdown": "True"}, true, false, 2},
		"both are absent":                                  {[]Sign{a, b}, nil, false, false, 2},
		"the only one is absent, and the node is Ready":    {[]Sign{ready, a}, nil, false, false, 2},
		"two are absent, and the node is Ready":            {[]Sign{ready, a, b}, nil, false, false, 3},
		"one is absent, one is well and the node is Ready": {[]Sign{ready, a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"XfsShutdown": "False"}, false, true, 2},
	} {
		n := scene.Bare("n1")
		for kind, status := range c.has {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
		}
		w := Weigh(c.signs, n, nil, scene.Noon)
		require.Equal(t, []bool{c.ill, c.well}, []bool{w.Ill, w.Well}, name)
		require.Len(t, w.Saw, c.saw, name)
	}
}

func TestLastLookSaysWhatCouldNotBeRead(t *testing.T) {
	signs := []Sign{{Kind: SignNotReady}, {Kind: SignStaleLease}}
	const unread = "what the Node does not show could not be read"
	require.ErrorContains(t, StillWitnessed(scene.Bare("n1"), signs, nil), unread)
	err := StillWitnessed(scene.Bare("n1"), signs[:1], nil)
	require.Error(t, err)
	require.NotContains(t, err.Error(), unread)
}

// TestGPUsAsAWitness: they are counted only where each is offered once, as a whole.
func TestGPUsAsAWitness(t *testing.T) {
	for name, c := range map[string]struct {
		labels  map[string]string
		offered map[corev1.ResourceName]string
		want    Answer
	}{
		"all are there":                {offered: map[corev1.ResourceName]string{GpuResource: "8"}, want: Well},
		"more than expected":           {offered: map[corev1.ResourceName]string{GpuResource: "9"}, want: Well},
		"one is missing":               {offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Ill},
		"all are missing":              {offered: map[corev1.ResourceName]string{"cpu": "8"}, want: Ill},
		"nothing is offered":           {want: Unknown},
		"the label is missing":         {labels: map[string]string{GPUCountLabel: ""}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Unknown},
		"partitioned in several sizes": {labels: map[string]string{MigStrategy: "mixed"}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Unknown},
		"partitioned in one size":      {labels: map[string]string{MigStrategy: "single"}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Ill},
		"shared by time":               {labels: map[string]string{GpuSharing: "time-slicing"}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Unknown},
		"not shared, as a label says":  {labels: map[string]string{GpuSharing: "none"}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Ill},
		"each offered twice":           {labels: map[string]string{GpuReplicas: "2"}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Unknown},
		"each offered once":            {labels: map[string]string{GpuReplicas: "1"}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Ill},
		"a product that is shared":     {labels: map[string]string{GpuProduct: "A100-SHARED"}, offered: map[corev1.ResourceName]string{GpuResource: "7"}, want: Unknown},
		"a part is offered":            {offered: map[corev1.ResourceName]string{GpuResource: "7", "nvidia.com/mig-1g.5gb": "1"}, want: Unknown},
		"a shared one is offered":      {offered: map[corev1.ResourceName]string{GpuResource: "7", "nvidia.com/gpu.shared": "1"}, want: Unknown},
		"another vendor's shared one":  {offered: map[corev1.ResourceName]string{GpuResource: "7", "amd.com/gpu.shared": "1"}, want: Ill},
	} {
		n := scene.Bare("n1")
		n.Labels[GPUCountLabel] = "8"
		for k, v := range c.labels {
			n.Labels[k] = v
		}
		n.Status.Allocatable = corev1.ResourceList{}
		for k, v := range c.offered {
			n.Status.Allocatable[k] = resource.MustParse(v)
		}
		require.Equal(t, c.want, GpusSay(n).Answer, name)
	}
}
