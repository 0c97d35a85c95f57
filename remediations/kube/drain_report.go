package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations/providers/kit"
)

const (
	maxNamed = 5
	// One page of a namespace.
	pdbsPerPage = 500
)

// DrainReport is the progress of one call of Drain.
type DrainReport struct {
	// Total is the number of pods that had to go. Left are still there, and Terminating of those
	// are already terminating.
	Total, Left, Terminating int
	// Evicted counts the accepted evictions of this call. Gone counts pods that ended before that.
	Evicted, Gone int
	// Pods that are terminating on a node that does not end them. They are not in Left, although
	// the API server still shows them.
	Stuck int
	// The pods that came to the node after this call began, and may run there although it is
	// cordoned. No other field counts them, because the drain neither evicts them nor waits for
	// them.
	Returned string
	// The first few pods that cannot go yet, by name. More is how many others there are.
	Held []Held
	More int
	// Why the other fields are not current: the node or its pods could not be read, or were not
	// read yet. Empty if they are current.
	Trouble string
}

// Held is a pod that cannot be evicted yet, with the reason.
type Held struct {
	Pod    string // namespace/name
	Budget string // namespace/name of the PodDisruptionBudget that holds it, if a budget does
	Why    string // the sentence after the pod's name, for example "is held back by …"
}

// String returns the report as a text for people.
func (r DrainReport) String() string {
	var s []string
	switch {
	case r.Total == 0 && r.Trouble != "":
	case r.Total == 0:
		s = append(s, "no pod had to go")
	case r.Left == 0 && r.Stuck == r.Total:
		s = append(s, "no pod is left to wait for")
	case r.Left == 0:
		s = append(s, fmt.Sprintf("%d of %d pods are gone", r.Total-r.Stuck, r.Total))
	default:
		left := fmt.Sprintf("%d of %d pods are left", r.Left, r.Total)
		if r.Terminating > 0 {
			left += fmt.Sprintf(", %d of them terminating", r.Terminating)
		}
		s = append(s, left)
	}
	if r.Stuck > 0 {
		s = append(s, fmt.Sprintf("%d not counted, which are terminating on a node that does not end them", r.Stuck))
	}
	if r.Returned != "" {
		s = append(s, "not evicted, because they came after the drain began and tolerate the cordon: "+r.Returned)
	}
	for _, h := range r.Held {
		s = append(s, h.Pod+" "+h.Why)
	}
	if r.More > 0 {
		s = append(s, fmt.Sprintf("and %d more", r.More))
	}
	if r.Trouble != "" {
		s = append(s, r.Trouble)
	}
	return strings.Join(s, "; ")
}

// by is the API server's refusal of the eviction. If no eviction was sent, by is nil and why has
// the reason.
type heldPod struct {
	pod *corev1.Pod
	by  error
	why string
}

// The PodDisruptionBudgets are read only for the first few pods by name.
func (r *drainRun) explain(ctx context.Context, left podsLeft, held []heldPod) {
	for i := range left.ending {
		if r.Now().Sub(left.ending[i].DeletionTimestamp.Time) > r.DeadAfter {
			held = append(held, heldPod{pod: &left.ending[i], why: overstays(&left.ending[i])})
		}
	}
	for i := range left.awaited {
		held = append(held, heldPod{pod: &left.awaited[i], why: "has no controller, and Drydock waits until it ends"})
	}
	slices.SortFunc(held, func(a, b heldPod) int { return cmp.Compare(kit.NameOf(a.pod), kit.NameOf(b.pod)) })
	named := held[:min(len(held), maxNamed)]
	r.report.Held, r.report.More = nil, len(held)-len(named)
	budgets := map[string][]policyv1.PodDisruptionBudget{}
	for _, h := range named {
		if h.by == nil {
			r.report.Held = append(r.report.Held, Held{Pod: kit.NameOf(h.pod), Why: h.why})
			continue
		}
		r.report.Held = append(r.report.Held, r.heldBy(ctx, h, budgets))
	}
}

// The API server names the PodDisruptionBudget that refused the eviction only in the text of its
// answer, if at all.
func (r *drainRun) heldBy(ctx context.Context, h heldPod, budgets map[string][]policyv1.PodDisruptionBudget) Held {
	ns, out := h.pod.Namespace, Held{Pod: kit.NameOf(h.pod)}
	budget := apierrors.HasStatusCause(h.by, policyv1.DisruptionBudgetCause)
	var status apierrors.APIStatus
	if budget || errors.As(h.by, &status) && status.Status().Code == http.StatusInternalServerError {
		if _, known := budgets[ns]; !known {
			call, cancel := context.WithTimeout(ctx, callTimeout)
			list, err := r.Client.PolicyV1().PodDisruptionBudgets(ns).List(call, metav1.ListOptions{Limit: pdbsPerPage})
			cancel()
			if err != nil {
				list = &policyv1.PodDisruptionBudgetList{} // without the budgets, the API server's own text is shown
			}
			budgets[ns] = list.Items
		}
	}
	var match []string
	var b policyv1.PodDisruptionBudget
	for _, p := range budgets[ns] {
		if s, err := metav1.LabelSelectorAsSelector(p.Spec.Selector); err == nil && s.Matches(labels.Set(h.pod.Labels)) {
			b, match = p, append(match, p.Namespace+"/"+p.Name)
		}
	}
	switch {
	case len(match) > 1:
		out.Why = fmt.Sprintf("has %d PodDisruptionBudgets (%s), and a pod with more than one cannot be evicted: delete all but one", len(match), first(match))
	case budget && len(match) == 1 && b.Status.ObservedGeneration < b.Generation:
		out.Budget, out.Why = match[0], fmt.Sprintf("is held back by PodDisruptionBudget %s (its controller has not processed it yet)", match[0])
	case budget && len(match) == 1:
		out.Budget, out.Why = match[0], fmt.Sprintf("is held back by PodDisruptionBudget %s (needs %d healthy, has %d)", match[0], b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	default:
		out.Why = "could not be evicted yet: " + kit.Brief(h.by)
	}
	return out
}

// The pod still exists long after its deletion time.
func overstays(pod *corev1.Pod) string {
	s := "should have ended by " + pod.DeletionTimestamp.UTC().Format(time.RFC3339)
	if len(pod.Finalizers) > 0 {
		s += " and has the finalizers " + first(pod.Finalizers)
	}
	return s
}

func some(pods []corev1.Pod) string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = kit.NameOf(&pods[i])
	}
	slices.Sort(names)
	return first(names)
}

func first(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
