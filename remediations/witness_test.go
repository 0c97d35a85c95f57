package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		"ahead as far as clocks are": {-leaseAhead, Well, "renewed at"},
		"from the future":            {-leaseAhead - 1, Unknown, "in the future"},
	} {
		l := Lease{ReadAt: noon, RenewedAt: noon.Add(-c.age), Duration: duration}
		got := LeaseSays(l)
		require.Equal(t, c.want, got.Answer, name)
		require.Contains(t, got.Saw, c.saw, name)
		require.Equal(t, noon, got.At, name)
	}
	never := LeaseSays(Lease{ReadAt: noon, Duration: duration})
	require.Equal(t, Unknown, never.Answer)
	require.Contains(t, never.Saw, "never renewed")
}

func TestConditionSaysSinceWhen(t *testing.T) {
	n := bare("n1")
	sign := Sign{Kind: SignNotReady}
	require.Equal(t, "Ready is True", sign.ask(n).Saw)
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon)
	require.Equal(t, "Ready is True since 2026-03-04T12:00:00Z", sign.ask(n).Saw)
	n.Status.Conditions = nil
	require.Equal(t, Unknown, sign.ask(n).Answer)
}

func TestConditionAsAWitness(t *testing.T) {
	sign := Sign{Kind: SignCondition, Name: "DiskPressure", Status: "True"}
	for status, want := range map[corev1.ConditionStatus]Answer{
		corev1.ConditionTrue: Ill, corev1.ConditionFalse: Well, corev1.ConditionUnknown: Unknown,
	} {
		n := bare("n1")
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "DiskPressure", Status: status})
		require.Equal(t, want, sign.ask(n).Answer, status)
	}
	unknown := Sign{Kind: SignCondition, Name: "DiskPressure", Status: "Unknown"}
	n := bare("n1")
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "DiskPressure", Status: corev1.ConditionUnknown})
	require.Equal(t, Ill, unknown.ask(n).Answer, "a policy may ask for Unknown")
}

// TestSignsAreWeighedTogether: one that says ill is enough, and all must say well.
func TestSignsAreWeighedTogether(t *testing.T) {
	ready, lease, provider := Sign{Kind: SignNotReady}, Sign{Kind: SignStaleLease}, Sign{Kind: SignNotRunning}
	said := func(lease, provider Answer) map[Sign]Testimony {
		read := map[Sign]Testimony{}
		for sign, a := range map[Sign]Answer{{Kind: SignStaleLease}: lease, {Kind: SignNotRunning}: provider} {
			if a != "" {
				read[sign] = Testimony{Answer: a, At: noon}
			}
		}
		if lease != "" {
			read[Sign{Kind: SignStaleLease}] = Testimony{Answer: lease, At: noon.Add(-time.Second)}
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
		w := weigh(all, bare("n1"), said(c.lease, c.provider), noon.Add(-time.Second))
		require.Equal(t, []bool{c.ill, c.well, c.unread}, []bool{w.ill, w.well, w.unread}, name)
		require.Equal(t, c.lease != "", w.oldest.Before(noon), name)
		require.False(t, w.oldest.IsZero(), name)
	}
	require.True(t, weigh(all, bare("n1"), said(Well, Well), noon).unread, "what was read before that is not counted")
	require.Zero(t, weigh([]Sign{ready}, bare("n1"), nil, noon).oldest, "the Node shows it")
}

// TestSignThatHoldsIsReadAgainInTime: after half a minute, and not before.
func TestSignThatHoldsIsReadAgainInTime(t *testing.T) {
	for age, again := range map[time.Duration]bool{witnessAgain - 1: false, witnessAgain: true} {
		s := golden{input: "testdata/decide/held-NotWitnessed-by-what-was-read.input.yaml"}.state(t)
		for sign, said := range s.Read {
			said.At = noon.Add(-age)
			s.Read[sign] = said
		}
		d := Decide(s, noon)
		require.Equal(t, NotWitnessed, d.Reason)
		require.Equal(t, again, d.Ask.Witness, age)
	}
}

func TestLastLookSaysWhatCouldNotBeRead(t *testing.T) {
	signs := []Sign{{Kind: SignNotReady}, {Kind: SignStaleLease}}
	const unread = "what the Node does not show could not be read"
	require.ErrorContains(t, stillWitnessed(bare("n1"), signs, nil), unread)
	err := stillWitnessed(bare("n1"), signs[:1], nil)
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
		"all are there":                {offered: map[corev1.ResourceName]string{gpuResource: "8"}, want: Well},
		"more than expected":           {offered: map[corev1.ResourceName]string{gpuResource: "9"}, want: Well},
		"one is missing":               {offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Ill},
		"all are missing":              {offered: map[corev1.ResourceName]string{"cpu": "8"}, want: Ill},
		"nothing is offered":           {want: Unknown},
		"the label is missing":         {labels: map[string]string{GPUCountLabel: ""}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Unknown},
		"partitioned in several sizes": {labels: map[string]string{migStrategy: "mixed"}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Unknown},
		"partitioned in one size":      {labels: map[string]string{migStrategy: "single"}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Ill},
		"shared by time":               {labels: map[string]string{gpuSharing: "time-slicing"}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Unknown},
		"not shared, as a label says":  {labels: map[string]string{gpuSharing: "none"}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Ill},
		"each offered twice":           {labels: map[string]string{gpuReplicas: "2"}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Unknown},
		"each offered once":            {labels: map[string]string{gpuReplicas: "1"}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Ill},
		"a product that is shared":     {labels: map[string]string{gpuProduct: "A100-SHARED"}, offered: map[corev1.ResourceName]string{gpuResource: "7"}, want: Unknown},
		"a part is offered":            {offered: map[corev1.ResourceName]string{gpuResource: "7", "nvidia.com/mig-1g.5gb": "1"}, want: Unknown},
		"a shared one is offered":      {offered: map[corev1.ResourceName]string{gpuResource: "7", "nvidia.com/gpu.shared": "1"}, want: Unknown},
		"another vendor's shared one":  {offered: map[corev1.ResourceName]string{gpuResource: "7", "amd.com/gpu.shared": "1"}, want: Ill},
	} {
		n := bare("n1")
		n.Labels[GPUCountLabel] = "8"
		for k, v := range c.labels {
			n.Labels[k] = v
		}
		n.Status.Allocatable = corev1.ResourceList{}
		for k, v := range c.offered {
			n.Status.Allocatable[k] = resource.MustParse(v)
		}
		require.Equal(t, c.want, gpusSay(n).Answer, name)
	}
}
