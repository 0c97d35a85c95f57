package backtest

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// Cures has the time that a step is assumed to need until its node is healthy, by the step's name.
type Cures map[string]time.Duration

// UsualCures returns the assumed times of the shipped steps. A drain does not cure a node: its time
// is how long the drain takes.
func UsualCures() Cures {
	return Cures{
		"restart-kube-proxy": time.Minute, "restart-cni": time.Minute, "restart-kubelet": time.Minute, "restart-containerd": time.Minute,
		"restart-unit": time.Minute, "reboot": 5 * time.Minute, "sysrq": 5 * time.Minute, "external": 5 * time.Minute, "rollout-restart": 5 * time.Minute,
		"apply-cni": 5 * time.Minute, "drain": 2 * time.Minute, "replace": 10 * time.Minute, "external-replace": 10 * time.Minute,
	}
}

// AllAfter returns a copy of c with the time d for every step.
func (c Cures) AllAfter(d time.Duration) Cures {
	out := maps.Clone(c)
	for step := range out {
		out[step] = d
	}
	return out
}

// An unknown step takes as long as a reboot.
func (c Cures) of(step string) time.Duration {
	if d, ok := c[step]; ok {
		return d
	}
	return c["reboot"]
}

func (c Cures) String() string {
	var out []string
	for _, step := range slices.Sorted(maps.Keys(c)) {
		out = append(out, step+" "+c[step].String())
	}
	return strings.Join(out, ", ")
}

type cured struct {
	at     time.Time
	hidden map[string]bool
}

type coming struct {
	at       time.Time
	node     string
	uid      string
	replaces bool
}

func (c *cured) cover(conditions []corev1.NodeCondition, ill map[corev1.NodeConditionType]corev1.ConditionStatus) []corev1.NodeCondition {
	out := slices.Clone(conditions)
	for i := range out {
		one := &out[i]
		was := one.Status
		switch bad, known := ill[one.Type]; {
		case one.Type == corev1.NodeReady:
			one.Status = corev1.ConditionTrue
		case known && bad == corev1.ConditionFalse:
			one.Status = corev1.ConditionTrue
		case known || one.Status == corev1.ConditionUnknown:
			one.Status = corev1.ConditionFalse
		}
		if one.Status != was {
			one.LastTransitionTime = metav1.NewTime(c.at)
		}
	}
	return out
}

// illWhen has only the conditions that a policy checks to confirm an alert.
func illWhen(c *remediations.Config) map[corev1.NodeConditionType]corev1.ConditionStatus {
	out := map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for _, p := range c.Policies {
		if p.Witness == nil {
			continue
		}
		for _, s := range p.Witness.Signs {
			if s.Kind == signs.Condition {
				out[corev1.NodeConditionType(s.Name)] = corev1.ConditionStatus(s.Status)
			}
		}
	}
	return out
}
