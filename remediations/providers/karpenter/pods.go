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

// displacedBefore is how long before the first sign of the fault a pod may have been displaced by
// it: an alert has its own delay before it fires, and clocks differ.
const displacedBefore = 30 * time.Minute

// displacedSince returns the earliest time at which a pod that had to leave the unhealthy Node may
// have been made again. A pod that has waited for longer never ran there.
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

// waiting names the pods that may need another machine; none: each has a node.
//
// A pod of the old Node that is still there was not made again yet, like the pods of a StatefulSet.
// A pod without a node counts for any NodePool: it may have had to give way to a displaced pod.
// Pods that waited before the fault do not count. Neither do pods that no machine helps: a
// DaemonSet's pod, which is for one node, and a pod held by a scheduling gate.
func (c *Client) waiting(ctx context.Context, was before, nodeGone bool) (texts []string, err error) {
	if nodeGone {
		left, err := kubeapi.List[corev1.Pod](ctx, c.core, "pods", "Pod", url.Values{"fieldSelector": {"spec.nodeName=" + was.Node}})
		if err != nil {
			return nil, err
		}
		for i := range left {
			if pod := &left[i]; !kit.Finished(pod) && !ofOneNode(pod) {
				texts = append(texts, fmt.Sprintf("Pod %s/%s of the old Node is still there", pod.Namespace, pod.Name))
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

// waits returns why the pod has no node.
func (c *Client) waits(pod *corev1.Pod) string {
	said := fmt.Sprintf("Pod %s/%s has had no node since %s", pod.Namespace, pod.Name, pod.CreationTimestamp.UTC().Format(time.RFC3339))
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason != "" {
			return said + ": " + c.condition(&metav1.Condition{Type: string(condition.Type), Status: metav1.ConditionStatus(condition.Status), Reason: condition.Reason, Message: condition.Message})
		}
	}
	return said + ", and no scheduler has looked at it"
}

// ofOneNode reports that the pod is for one node, and would run on no other: a DaemonSet's pod, or
// one that the node's kubelet made.
func ofOneNode(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" || o.Kind == "Node" })
}
