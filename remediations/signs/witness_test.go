package signs_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/signs"
)

// TestLeaseAsAWitness: a lease gives no answer if it was never renewed, or if a clock is wrong.
func TestLeaseAsAWitness(t *testing.T) {
	const duration = 40 * time.Second
	for name, c := range map[string]struct {
		age  time.Duration // of the renewal when the lease was read
		want signs.Answer
		saw  string
	}{
		"renewed a moment ago":       {time.Second, signs.Well, "renewed at 2026-03-04T11:59:59Z"},
		"just not stale":             {duration, signs.Well, "renewed at"},
		"not fresh by this clock":    {duration + 1, signs.Unknown, "Drydock must watch the lease for 40s"},
		"ahead as far as clocks are": {-signs.LeaseAhead, signs.Well, "renewed at"},
		"from the future":            {-signs.LeaseAhead - 1, signs.Unknown, "in the future"},
	} {
		l := signs.Lease{ReadAt: noon, RenewedAt: noon.Add(-c.age), Duration: duration}
		got := signs.LeaseSays(l)
		require.Equal(t, c.want, got.Answer, name)
		require.Contains(t, got.Saw, c.saw, name)
		require.Equal(t, noon, got.At, name)
	}
	never := signs.LeaseSays(signs.Lease{ReadAt: noon, Duration: duration})
	require.Equal(t, signs.Unknown, never.Answer)
	require.Contains(t, never.Saw, "never renewed")
}

func TestConditionSaysSinceWhen(t *testing.T) {
	n := bare("n1")
	sign := signs.Sign{Kind: signs.NotReady}
	require.Equal(t, "Ready is True", sign.Ask(n).Saw)
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon)
	require.Equal(t, "Ready is True since 2026-03-04T12:00:00Z", sign.Ask(n).Saw)
	n.Status.Conditions = nil
	require.Equal(t, signs.Unknown, sign.Ask(n).Answer)
}

func TestConditionAsAWitness(t *testing.T) {
	sign := signs.Sign{Kind: signs.Condition, Name: "DiskPressure", Status: "True"}
	for status, want := range map[corev1.ConditionStatus]signs.Answer{
		corev1.ConditionTrue: signs.Ill, corev1.ConditionFalse: signs.Well, corev1.ConditionUnknown: signs.Unknown,
	} {
		n := bare("n1")
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "DiskPressure", Status: status})
		require.Equal(t, want, sign.Ask(n).Answer, status)
	}
	unknown := signs.Sign{Kind: signs.Condition, Name: "DiskPressure", Status: "Unknown"}
	n := bare("n1")
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "DiskPressure", Status: corev1.ConditionUnknown})
	require.Equal(t, signs.Ill, unknown.Ask(n).Answer, "a policy may ask for Unknown")
}

// TestSignsAreWeighedTogether: one sign that is Ill is enough for a step, and all must be Well for
// a cure.
func TestSignsAreWeighedTogether(t *testing.T) {
	ready, lease, provider := signs.Sign{Kind: signs.NotReady}, signs.Sign{Kind: signs.StaleLease}, signs.Sign{Kind: signs.NotRunning}
	said := func(lease, provider signs.Answer) map[signs.Sign]signs.Testimony {
		read := map[signs.Sign]signs.Testimony{}
		for sign, a := range map[signs.Sign]signs.Answer{{Kind: signs.StaleLease}: lease, {Kind: signs.NotRunning}: provider} {
			if a != "" {
				read[sign] = signs.Testimony{Answer: a, At: noon}
			}
		}
		if lease != "" {
			read[signs.Sign{Kind: signs.StaleLease}] = signs.Testimony{Answer: lease, At: noon.Add(-time.Second)}
		}
		return read
	}
	all := []signs.Sign{ready, lease, provider}
	for name, c := range map[string]struct {
		lease, provider   signs.Answer
		ill, well, unread bool
	}{
		"all are well":     {signs.Well, signs.Well, false, true, false},
		"one is ill":       {signs.Ill, signs.Well, true, false, false},
		"one is not known": {signs.Well, signs.Unknown, false, false, false},
		"one was not read": {"", signs.Well, false, false, true},
	} {
		w := signs.Weigh(all, bare("n1"), said(c.lease, c.provider), noon.Add(-time.Second), noon)
		require.Equal(t, []bool{c.ill, c.well, c.unread}, []bool{w.Ill, w.Well, w.Unread}, name)
		require.Equal(t, c.lease != "", w.Oldest.Before(noon), name)
		require.False(t, w.Oldest.IsZero(), name)
	}
	require.True(t, signs.Weigh(all, bare("n1"), said(signs.Well, signs.Well), noon, noon).Unread, "what was read before that is not counted")
	require.Zero(t, signs.Weigh([]signs.Sign{ready}, bare("n1"), nil, noon, noon).Oldest, "the Node shows it")
}

// TestAMissingConditionGivesNoData: a missing condition does not count if the node has another
// condition of the list. If it has none of them, the answer is Unknown.
func TestAMissingConditionGivesNoData(t *testing.T) {
	a, b := signs.Sign{Kind: signs.Condition, Name: "KernelReady", Status: "False"}, signs.Sign{Kind: signs.Condition, Name: "XfsShutdown", Status: "True"}
	ready := signs.Sign{Kind: signs.NotReady}
	for name, c := range map[string]struct {
		signs     []signs.Sign
		has       map[corev1.NodeConditionType]corev1.ConditionStatus
		ill, well bool
		saw       int
	}{
		"one is well, the other is absent":                 {[]signs.Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"KernelReady": "True"}, false, true, 1},
		"one is ill, the other is absent":                  {[]signs.Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"XfsShutdown": "True"}, true, false, 1},
		"one is well, the other is Unknown":                {[]signs.Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"KernelReady": "True", "XfsShutdown": "Unknown"}, false, false, 2},
		"one is well, the other is ill":                    {[]signs.Sign{a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"KernelReady": "True", "XfsShutdown": "True"}, true, false, 2},
		"both are absent":                                  {[]signs.Sign{a, b}, nil, false, false, 2},
		"the only one is absent, and the node is Ready":    {[]signs.Sign{ready, a}, nil, false, false, 2},
		"two are absent, and the node is Ready":            {[]signs.Sign{ready, a, b}, nil, false, false, 3},
		"one is absent, one is well and the node is Ready": {[]signs.Sign{ready, a, b}, map[corev1.NodeConditionType]corev1.ConditionStatus{"XfsShutdown": "False"}, false, true, 2},
	} {
		n := bare("n1")
		for kind, status := range c.has {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
		}
		w := signs.Weigh(c.signs, n, nil, noon, noon)
		require.Equal(t, []bool{c.ill, c.well}, []bool{w.Ill, w.Well}, name)
		require.Len(t, w.Saw, c.saw, name)
	}
}

// TestGPUsAsAWitness: the GPUs count only if the node offers each of them once and as a whole.
func TestGPUsAsAWitness(t *testing.T) {
	for name, c := range map[string]struct {
		labels  map[string]string
		offered map[corev1.ResourceName]string
		want    signs.Answer
	}{
		"all are there":                {offered: map[corev1.ResourceName]string{signs.GpuResource: "8"}, want: signs.Well},
		"more than expected":           {offered: map[corev1.ResourceName]string{signs.GpuResource: "9"}, want: signs.Well},
		"one is missing":               {offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Ill},
		"all are missing":              {offered: map[corev1.ResourceName]string{"cpu": "8", signs.GpuResource: "0"}, want: signs.Ill},
		"it never offered one (DRA)":   {offered: map[corev1.ResourceName]string{"cpu": "8"}, want: signs.Unknown},
		"offered under another name":   {offered: map[corev1.ResourceName]string{"cpu": "8", "nvidia.com/GA102GL_A10": "8"}, want: signs.Unknown},
		"for virtual machines":         {labels: map[string]string{"nvidia.com/gpu.workload.config": "vm-passthrough"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "0", "nvidia.com/GA102GL_A10": "8"}, want: signs.Unknown},
		"for containers, as it says":   {labels: map[string]string{"nvidia.com/gpu.workload.config": "container"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Ill},
		"without a device plugin":      {labels: map[string]string{"nvidia.com/gpu.deploy.device-plugin": "false"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "0"}, want: signs.Unknown},
		"MIG is being changed":         {labels: map[string]string{"nvidia.com/mig.config.state": "rebooting"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "0"}, want: signs.Unknown},
		"MIG was changed":              {labels: map[string]string{"nvidia.com/mig.config.state": "success"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Ill},
		"a network card of the vendor": {offered: map[corev1.ResourceName]string{signs.GpuResource: "7", "nvidia.com/hostdev": "2"}, want: signs.Ill},
		"nothing is offered":           {want: signs.Unknown},
		"the label is missing":         {labels: map[string]string{signs.GPUCountLabel: ""}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Unknown},
		"partitioned in several sizes": {labels: map[string]string{signs.MigStrategy: "mixed"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Unknown},
		"partitioned in one size":      {labels: map[string]string{signs.MigStrategy: "single"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Ill},
		"shared by time":               {labels: map[string]string{signs.GpuSharing: "time-slicing"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Unknown},
		"not shared, as a label says":  {labels: map[string]string{signs.GpuSharing: "none"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Ill},
		"each offered twice":           {labels: map[string]string{signs.GpuReplicas: "2"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Unknown},
		"each offered once":            {labels: map[string]string{signs.GpuReplicas: "1"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Ill},
		"a product that is shared":     {labels: map[string]string{signs.GpuProduct: "A100-SHARED"}, offered: map[corev1.ResourceName]string{signs.GpuResource: "7"}, want: signs.Unknown},
		"a part is offered":            {offered: map[corev1.ResourceName]string{signs.GpuResource: "7", "nvidia.com/mig-1g.5gb": "1"}, want: signs.Unknown},
		"a shared one is offered":      {offered: map[corev1.ResourceName]string{signs.GpuResource: "7", "nvidia.com/gpu.shared": "1"}, want: signs.Unknown},
		"another vendor's shared one":  {offered: map[corev1.ResourceName]string{signs.GpuResource: "7", "amd.com/gpu.shared": "1"}, want: signs.Ill},
	} {
		n := bare("n1")
		n.Labels[signs.GPUCountLabel] = "8"
		for k, v := range c.labels {
			n.Labels[k] = v
		}
		n.Status.Allocatable = corev1.ResourceList{}
		for k, v := range c.offered {
			n.Status.Allocatable[k] = resource.MustParse(v)
		}
		require.Equal(t, c.want, signs.GpusSay(n).Answer, name)
	}
}

// TestAnUnconfirmedConditionGivesNoData: the program that sets it may have stopped weeks ago, so
// the condition shows neither a fault nor a cure.
func TestAnUnconfirmedConditionGivesNoData(t *testing.T) {
	sign := signs.Sign{Kind: signs.Condition, Name: "KernelDeadlock", Status: "True", StaleAfter: time.Hour}
	for name, c := range map[string]struct {
		status corev1.ConditionStatus
		age    time.Duration
		want   signs.Answer
	}{
		"True, confirmed":               {corev1.ConditionTrue, time.Hour, signs.Ill},
		"True, not confirmed for long":  {corev1.ConditionTrue, time.Hour + time.Second, signs.Unknown},
		"False, confirmed":              {corev1.ConditionFalse, time.Hour, signs.Well},
		"False, not confirmed for long": {corev1.ConditionFalse, 17 * 24 * time.Hour, signs.Unknown},
		"by a clock that is ahead":      {corev1.ConditionTrue, -time.Hour, signs.Ill},
	} {
		n := bare("n1")
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: "KernelDeadlock", Status: c.status, LastHeartbeatTime: metav1.NewTime(noon.Add(-c.age)),
		})
		require.Equal(t, c.want, sign.AskAt(n, noon).Answer, name)
		require.NotEqual(t, signs.Unknown, signs.Sign{Kind: signs.Condition, Name: "KernelDeadlock", Status: "True"}.AskAt(n, noon).Answer, "a policy may believe it at any age")
	}
	n := bare("n1")
	n.Status.Conditions = []corev1.NodeCondition{{Type: "KernelDeadlock", Status: "True", LastHeartbeatTime: metav1.NewTime(noon.Add(-17 * 24 * time.Hour))}}
	require.Equal(t, "KernelDeadlock is True, but nothing has confirmed it for 17 days (staleAfter: 1h)", sign.AskAt(n, noon).Saw)
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Time{}
	require.Equal(t, signs.Ill, sign.AskAt(n, noon).Answer, "what sets it writes no heartbeats, so its age is not known")
}

func TestConditionIsSelectedByReasonAndMessage(t *testing.T) {
	expr := regexp.MustCompile
	for name, c := range map[string]struct {
		texts signs.Texts
		want  signs.Answer
	}{
		"a reason that is selected":   {signs.Texts{Reason: expr("^IPAMD")}, signs.Ill},
		"another reason":              {signs.Texts{Reason: expr("^Interface")}, signs.Unknown},
		"a reason that is left out":   {signs.Texts{ReasonNot: expr("^IPAMDNotReady$")}, signs.Unknown},
		"another one is left out":     {signs.Texts{ReasonNot: expr("^Other$")}, signs.Ill},
		"a message that is selected":  {signs.Texts{Message: expr("sda")}, signs.Ill},
		"another message":             {signs.Texts{Message: expr("sdi")}, signs.Unknown},
		"a message that is left out":  {signs.Texts{MessageNot: expr("sda")}, signs.Unknown},
		"a selected reason, left out": {signs.Texts{Reason: expr("IPAMD"), MessageNot: expr("sda")}, signs.Unknown},
	} {
		n := bare("n1")
		n.Status.Conditions = []corev1.NodeCondition{{Type: "NetworkingReady", Status: "False", Reason: "IPAMDNotReady", Message: "on sda"}}
		sign := signs.Sign{Kind: signs.Condition, Name: "NetworkingReady", Status: "False", Texts: &c.texts}
		require.Equal(t, c.want, sign.AskAt(n, noon).Answer, name)
		n.Status.Conditions[0].Status = corev1.ConditionTrue
		require.Equal(t, signs.Well, sign.AskAt(n, noon).Answer, "%s: it is well whatever it says", name)
	}
}

// TestAConditionWhoseReasonAlternatesIsOneFault: an agent that alternates between two reasons sets
// lastTransitionTime each time, although the status stays. Only a change of the status counts.
func TestAConditionWhoseReasonAlternatesIsOneFault(t *testing.T) {
	sign := signs.Sign{Kind: signs.Condition, Name: "AcceleratedHardwareReady", Status: "False"}
	n := bare("n1")
	for minute := range 10 {
		at := noon.Add(time.Duration(minute) * time.Minute)
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: "AcceleratedHardwareReady", Status: "False", Reason: []string{"DCGMError", "NvidiaXID79Error"}[minute%2],
			LastTransitionTime: metav1.NewTime(at), LastHeartbeatTime: metav1.NewTime(at),
		}}
		require.Equal(t, signs.Ill, sign.AskAt(n, at).Answer, minute)
	}
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	require.Equal(t, signs.Well, sign.AskAt(n, noon.Add(9*time.Minute)).Answer, "the control")
}
