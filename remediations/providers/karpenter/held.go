package karpenter

import (
	"fmt"
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

// maxPodHolds bounds how many pods are named at once.
const maxPodHolds = 3

// hold is why the NodeClaim is not deleted now.
type hold struct {
	why  kit.Concern
	text string
}

// held names all holds at once; nil: there are none.
func (c *Client) held(s *sight) error {
	holds := slices.Concat(c.nodeHolds(s), c.poolHolds(s), c.podHolds(s))
	if len(holds) == 0 {
		return nil
	}
	e := &kit.Refusal{Why: kit.While}
	var all []string
	for _, h := range holds {
		all = append(all, h.text)
		if h.why == kit.Machine {
			e.Why = h.why
		}
	}
	e.Text = strings.Join(all, "; ")
	return e
}

func (c *Client) nodeHolds(s *sight) (out []hold) {
	if s.claim.DeletionTimestamp != nil {
		out = append(out, hold{kit.While, fmt.Sprintf("NodeClaim %s is being deleted already", s.claim.Name)})
	}
	if at, there := s.claim.Annotations[terminateAt]; there && s.claim.DeletionTimestamp == nil {
		out = append(out, hold{kit.While, fmt.Sprintf("NodeClaim %s has an end of its drain before anybody deletes it, %s, as Karpenter's own node repair sets one (annotation %s): "+
			"a deletion now would not drain to the end", s.claim.Name, c.Quote(at), terminateAt)})
	}
	if s.node.DeletionTimestamp != nil {
		out = append(out, hold{kit.While, fmt.Sprintf("Node %s is being deleted already", s.node.Name)})
	}
	if slices.ContainsFunc(s.node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == disruptedKey }) {
		out = append(out, hold{kit.While, fmt.Sprintf("Karpenter disrupts Node %s already (taint %s)", s.node.Name, disruptedKey)})
	}
	if slices.ContainsFunc(s.node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == rebootingKey }) {
		out = append(out, hold{kit.While, fmt.Sprintf("Karpenter reboots Node %s (taint %s)", s.node.Name, rebootingKey)})
	}
	if s.claim.Status.is(rebooting) {
		// Karpenter removes the taint when the machine has booted, and waits for the Node for longer.
		out = append(out, hold{kit.While, fmt.Sprintf("Karpenter reboots the instance of NodeClaim %s: %s", s.claim.Name, c.condition(s.claim.Status.get(rebooting)))})
	}
	if !slices.Contains(s.node.Finalizers, finalizer) {
		out = append(out, hold{kit.Machine, fmt.Sprintf("Node %s lacks the finalizer %s, so Karpenter would end the instance without a drain", s.node.Name, finalizer)})
	}
	return append(out, c.forbidden(s)...)
}

// forbidden: an annotation says that Karpenter must not replace the machine. Annotations that
// Drydock sets on the Node do not count.
func (c *Client) forbidden(s *sight) (out []hold) {
	own := c.registry.ReadJournal(&s.node)
	for _, key := range []string{doNotDisrupt, doNotRepair} {
		if !own.Announced(&s.node, key) {
			out = append(out, forbids("Node", &s.node, key)...)
		}
		out = append(out, forbids(nodeClaimKind, s.claim, key)...)
	}
	return out
}

func forbids(kind string, of metav1.Object, key string) []hold {
	if value, there := of.GetAnnotations()[key]; !there || value == "false" {
		return nil
	}
	return []hold{{kit.Machine, fmt.Sprintf("%s %s has the annotation %s, which forbids a replacement; to allow it: kubectl annotate %s %s %s-",
		kind, of.GetName(), key, strings.ToLower(kind), of.GetName(), key)}}
}

func (c *Client) poolHolds(s *sight) (out []hold) {
	p := &s.pool
	if p.DeletionTimestamp != nil {
		out = append(out, hold{kit.Machine, fmt.Sprintf("NodePool %s is being deleted, and would make no new Node", p.Name)})
	}
	if !p.Status.is(readyPool) {
		out = append(out, hold{kit.Machine, fmt.Sprintf("NodePool %s is not Ready, and would make no new Node: %s", p.Name, c.condition(p.Status.get(readyPool)))})
	}
	for _, b := range p.Spec.Disruption.Budgets {
		switch active, err := b.forbids(c.now()); {
		case err != nil:
			out = append(out, hold{kit.Machine, fmt.Sprintf("NodePool %s has a disruption budget of %s with the schedule %s, which cannot be read", p.Name, b.Nodes, c.Quote(b.Schedule))})
		case active:
			out = append(out, hold{kit.While, fmt.Sprintf("NodePool %s allows no disruption now (a budget of %s)", p.Name, b)})
		}
	}
	return out
}

// podHolds names the pods that would hold the drain of a NodeClaim that has no
// terminationGracePeriod.
func (c *Client) podHolds(s *sight) (out []hold) {
	for i := range s.pods {
		pod := &s.pods[i]
		if !drained(pod) {
			continue
		}
		const forever = "and NodeClaim %s has no terminationGracePeriod, so Karpenter's drain might never end"
		if value, there := pod.Annotations[doNotDisrupt]; there && value != "false" {
			out = append(out, hold{kit.Machine, fmt.Sprintf("Pod %s/%s must not be disrupted (annotation %s), "+forever, pod.Namespace, pod.Name, doNotDisrupt, s.claim.Name)})
			continue
		}
		for j := range s.budgets {
			if b := &s.budgets[j]; blocks(b, pod) {
				out = append(out, hold{kit.While, fmt.Sprintf("PodDisruptionBudget %s/%s allows no eviction of Pod %s, "+forever, b.Namespace, b.Name, pod.Name, s.claim.Name)})
				break
			}
		}
	}
	if more := len(out) - maxPodHolds; more > 0 {
		out[maxPodHolds-1].text += ", and " + text.Count(more, "more pod")
		if slices.ContainsFunc(out, func(h hold) bool { return h.why == kit.Machine }) {
			out[0].why = kit.Machine
		}
		out = out[:maxPodHolds]
	}
	return out
}

// drained reports that Karpenter would wait for the pod's eviction.
func drained(p *corev1.Pod) bool {
	mirror := slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" })
	stays := slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &corev1.Taint{Key: disruptedKey, Effect: corev1.TaintEffectNoSchedule}, false)
	})
	return !over(p) && p.DeletionTimestamp == nil && !mirror && !stays
}

// blocks reports that the API server would refuse the pod's eviction because of the budget. A pod
// that is not ready may go if the budget allows it, or if enough pods are healthy.
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

// condition describes a condition.
func (c *Client) condition(of *metav1.Condition) string {
	if of == nil {
		return "Karpenter says nothing of it yet"
	}
	said := fmt.Sprintf("%s is %s, %s", of.Type, of.Status, of.Reason)
	if of.Message != "" {
		said += ", " + c.Quote(of.Message)
	}
	return said
}
