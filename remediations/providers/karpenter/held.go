package karpenter

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/providers/kit"
)

const maxPodHolds = 3

func (c *Client) held(s *sight) error {
	var all kit.Holds
	c.nodeHolds(s, &all)
	c.poolHolds(s, &all)
	return append(all, podHolds(s)...).Err()
}

func (c *Client) nodeHolds(s *sight, all *kit.Holds) {
	claim, node := s.claim.Name, s.node.Name
	tainted := func(key string) bool {
		return slices.ContainsFunc(s.node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
	all.If(s.claim.DeletionTimestamp != nil, kit.While, "NodeClaim %s is already being deleted", claim)
	at, there := s.claim.Annotations[terminateAt]
	all.If(there && s.claim.DeletionTimestamp == nil, kit.While, "NodeClaim %s has a time at which its drain ends, %s, although it is not being deleted (annotation %s, set by Karpenter's own node repair): "+
		"a deletion now would not drain the Node completely", claim, c.Quote(at), terminateAt)
	all.If(s.node.DeletionTimestamp != nil, kit.While, "Node %s is already being deleted", node)
	all.If(tainted(disruptedKey), kit.While, "Karpenter is already disrupting Node %s (taint %s)", node, disruptedKey)
	all.If(tainted(rebootingKey), kit.While, "Karpenter is rebooting Node %s (taint %s)", node, rebootingKey)
	// Karpenter removes the taint when the machine has booted. After that, only the condition shows
	// the reboot, until the Node is Ready.
	all.If(s.claim.Status.True(rebooting), kit.While, "Karpenter is rebooting the instance of NodeClaim %s: %s", claim, c.condition(s.claim.Status.Get(rebooting)))
	all.If(!slices.Contains(s.node.Finalizers, finalizer), kit.Machine, "Node %s lacks the finalizer %s, so Karpenter would terminate the instance without a drain", node, finalizer)
	c.forbidden(s, all)
}

// forbidden ignores annotations that Drydock itself has set on the Node.
func (c *Client) forbidden(s *sight, all *kit.Holds) {
	own := c.registry.ReadJournal(&s.node)
	for _, key := range []string{doNotDisrupt, doNotRepair} {
		if !own.Announced(&s.node, key) {
			forbids("Node", &s.node, key, all)
		}
		forbids(nodeClaimKind, s.claim, key, all)
	}
}

func forbids(kind string, of metav1.Object, key string, all *kit.Holds) {
	value, there := of.GetAnnotations()[key]
	all.If(there && value != "false", kit.Machine, "%s %s has the annotation %s, which forbids a replacement; to allow it: kubectl annotate %s %s %s-",
		kind, of.GetName(), key, strings.ToLower(kind), of.GetName(), key)
}

func (c *Client) poolHolds(s *sight, all *kit.Holds) {
	p := &s.pool
	all.If(p.DeletionTimestamp != nil, kit.Machine, "NodePool %s is being deleted, so it would make no new Node", p.Name)
	all.If(!p.Status.True(readyPool), kit.Machine, "NodePool %s is not Ready, so it would make no new Node: %s", p.Name, c.condition(p.Status.Get(readyPool)))
	for _, b := range p.Spec.Disruption.Budgets {
		active, err := b.forbids(c.now())
		all.If(err != nil, kit.Machine, "NodePool %s has a disruption budget of %s whose schedule or duration is invalid (schedule %s)", p.Name, b.Nodes, c.Quote(b.Schedule))
		all.If(active, kit.While, "NodePool %s allows no disruption now (a budget of %s)", p.Name, b)
	}
}

// podHolds has no reasons if the NodeClaim has a terminationGracePeriod, which ends the drain.
func podHolds(s *sight) (out kit.Holds) {
	for i := range s.pods {
		pod := &s.pods[i]
		if !drained(pod) {
			continue
		}
		const forever = "and NodeClaim %s has no terminationGracePeriod, so Karpenter's drain may never end"
		if value, there := pod.Annotations[doNotDisrupt]; there && value != "false" {
			out.If(true, kit.Machine, "Pod %s/%s must not be disrupted (annotation %s), "+forever, pod.Namespace, pod.Name, doNotDisrupt, s.claim.Name)
			continue
		}
		if j := slices.IndexFunc(s.budgets, func(b policyv1.PodDisruptionBudget) bool { return blocks(&b, pod) }); j >= 0 {
			out.If(true, kit.While, "PodDisruptionBudget %s/%s allows no eviction of Pod %s, "+forever, s.budgets[j].Namespace, s.budgets[j].Name, pod.Name, s.claim.Name)
		}
	}
	if more := len(out) - maxPodHolds; more > 0 {
		out[maxPodHolds-1].Text += ", and " + text.Count(more, "more pod")
		if slices.ContainsFunc(out, func(h *kit.Refusal) bool { return h.Why == kit.Machine }) {
			out[0].Why = kit.Machine
		}
		out = out[:maxPodHolds]
	}
	return out
}

func drained(p *corev1.Pod) bool {
	mirror := slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" })
	stays := slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &corev1.Taint{Key: disruptedKey, Effect: corev1.TaintEffectNoSchedule}, false)
	})
	return !kit.Finished(p) && p.DeletionTimestamp == nil && !mirror && !stays
}

// A pod that is not ready may be evicted if the budget's policy allows it, or if enough pods are
// healthy.
func blocks(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if b.Namespace != p.Namespace || b.Status.DisruptionsAllowed > 0 || err == nil && !selector.Matches(k8slabels.Set(p.Labels)) {
		return false
	}
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch policy := b.Spec.UnhealthyPodEvictionPolicy; {
	case p.Status.Phase == corev1.PodPending:
		return false
	case ready:
		return true
	case policy != nil && *policy == policyv1.AlwaysAllow:
		return false
	}
	return b.Status.CurrentHealthy < b.Status.DesiredHealthy || b.Status.DesiredHealthy == 0
}

func (c *Client) condition(of *metav1.Condition) string { return c.Says("Karpenter", of) }
