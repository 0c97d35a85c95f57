package karpenter

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// displacedBefore is a margin before the first sign of the fault. The fault may have displaced pods
// earlier, because an alert has a delay before it fires, and clocks differ.
const displacedBefore = 30 * time.Minute

// displacedSince returns the earliest creation time of a pod that replaces a pod of the unhealthy
// Node. A pod that has waited for longer never ran there.
func (c *Client) displacedSince(n *corev1.Node) time.Time {
	since := c.now()
	journal := c.registry.ReadJournal(n)
	if r := journal.Record; r != nil {
		since = remediations.Earlier(since, r.Began)
	}
	for _, a := range journal.Alerts {
		since = remediations.Earlier(since, a.StartsAt)
	}
	if ready := remediations.ReadyCondition(n); ready != nil && ready.Status != corev1.ConditionTrue && !ready.LastTransitionTime.IsZero() {
		since = remediations.Earlier(since, ready.LastTransitionTime.Time)
	}
	return since.Add(-displacedBefore).UTC().Truncate(time.Second)
}

// waiting describes the pods that may need another machine. It returns none if every pod has a
// node.
//
// If the Node is gone, a pod that is still assigned to it counts, because its replacement is not
// created yet. This is so for pods of a StatefulSet. A pod without a node counts for every
// NodePool, because a displaced pod may have taken its place.
//
// Pods that already waited before the fault do not count. Neither do pods that no new machine
// helps: a DaemonSet's pod, which is for one node, and a pod with a scheduling gate.
func (c *Client) waiting(ctx context.Context, was before, nodeGone bool) (texts []string, err error) {
	if nodeGone {
		left, err := kubeapi.List[corev1.Pod](ctx, c.core, "pods", "Pod", url.Values{"fieldSelector": {"spec.nodeName=" + was.Node}})
		if err != nil {
			return nil, err
		}
		for i := range left {
			if pod := &left[i]; !kit.Finished(pod) && !ofOneNode(pod) {
				texts = append(texts, fmt.Sprintf("Pod %s/%s of the old Node still exists", pod.Namespace, pod.Name))
			}
		}
	}
	pods, err := kubeapi.List[corev1.Pod](ctx, c.core, "pods", "Pod", url.Values{"fieldSelector": {"spec.nodeName="}})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range pods {
		pod := &pods[i]
		if kit.Finished(pod) || pod.DeletionTimestamp != nil || ofOneNode(pod) || len(pod.Spec.SchedulingGates) > 0 || pod.CreationTimestamp.Time.Before(was.Since) {
			continue
		}
		texts = append(texts, c.waits(pod))
	}
	if more := len(texts) - maxPodHolds; more > 0 {
		texts = append(texts[:maxPodHolds], text.Count(more, "more pod"))
	}
	return texts, nil
}

// waits describes why the pod has no node.
func (c *Client) waits(pod *corev1.Pod) string {
	said := fmt.Sprintf("Pod %s/%s has had no node since %s", pod.Namespace, pod.Name, pod.CreationTimestamp.UTC().Format(time.RFC3339))
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason != "" {
			return said + ": " + c.condition(&metav1.Condition{Type: string(condition.Type), Status: metav1.ConditionStatus(condition.Status), Reason: condition.Reason, Message: condition.Message})
		}
	}
	return said + ", and no scheduler has tried to place it"
}

// ofOneNode reports whether the pod can run on one node only: it belongs to a DaemonSet, or the
// node's kubelet created it.
func ofOneNode(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" || o.Kind == "Node" })
}
