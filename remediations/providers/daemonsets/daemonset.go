package daemonsets

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// Pod restarts a node's pod of one DaemonSet: it deletes the pod, and the DaemonSet's controller
// creates a new one.
type Pod struct {
	Client    kubernetes.Interface
	DaemonSet types.NamespacedName
}

var (
	_ engine.Actuator  = Pod{}
	_ engine.Surveyor  = Pod{}
	_ engine.PodProver = Pod{}
)

// Survey returns the pod's UID, which is recorded on the Node before the pod is deleted. If the pod
// is missing, the step does not begin, and no attempt is used up.
func (d Pod) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	pod, err := d.own(ctx, m.Node)
	if err != nil {
		return surveyTrouble(err)
	}
	return remediations.Keeping(before{Instance: string(pod.UID), Hostname: m.Node, Pool: d.DaemonSet.String()})
}

// Some JSON names do not fit their values, but must stay: existing records have them.
type before struct {
	// Instance is the pod's UID. For a rollout it is the DaemonSet's UID and generation:
	// UID/GENERATION.
	Instance string `json:"instance"`
	// Hostname is the Node's name, and Pool the DaemonSet as namespace/name. Count is the desired
	// number of pods, only for a rollout.
	Hostname string `json:"hostname"`
	Pool     string `json:"pool"`
	Count    int    `json:"count"`
}

// Errors other than a Refusal concern all nodes. If the API server would always refuse the request
// (kit.Final), a person must correct the setup. Otherwise the step is soon tried again.
func surveyTrouble(err error) remediations.Survey {
	var found *kit.Refusal
	why := kit.Passing
	switch {
	case errors.As(err, &found):
		why = found.Why
	case kit.Final(err):
		why = kit.Setup
	}
	return (&kit.Refusal{Why: why, Text: err.Error()}).Survey()
}

// Act deletes the pod that Survey recorded. It never deletes a newer pod, even if it has the same
// name.
func (d Pod) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	pod, err := d.own(ctx, m.Node)
	if err != nil {
		return remediations.CallRefused, err
	}
	var was before
	switch err := m.Before.Read(&was); {
	case err != nil:
		return remediations.CallRefused, fmt.Errorf("restarting the pod of DaemonSet %s on Node %s: %w", d.DaemonSet, m.Node, err)
	case was.Instance != string(pod.UID):
		return remediations.CallRefused, fmt.Errorf("pod %s of Node %s has changed since the decision: it was already restarted", kit.NameOf(pod), m.Node)
	}
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	err = d.delete(ctx, pod)
	if err == nil {
		return remediations.CallAccepted, nil
	}
	return outcomeOf(err), written(err, fmt.Sprintf("deleting pod %s of Node %s", kit.NameOf(pod), m.Node))
}

// If the API server is busy, or refuses a right that Drydock had a moment ago, the error is a
// Refusal: both may pass, so no attempt is used up.
func written(err error, doing string) error {
	if !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &kit.Refusal{Why: kit.Passing, Again: remediations.AskPassing, Text: doing + ": " + err.Error(), Cause: err}
}

// client-go must not repeat the deletion, because a repeated request could arrive long after the
// decision.
func (d Pod) delete(ctx context.Context, pod *corev1.Pod) error {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	return d.Client.CoreV1().RESTClient().Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		MaxRetries(0).Body(&o).Do(ctx).Error()
}

// outcomeOf returns CallRefused only if the API server certainly changed nothing.
func outcomeOf(err error) remediations.CallOutcome {
	if apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err) || kit.Final(err) {
		return remediations.CallRefused
	}
	return remediations.CallUnknown
}

// Proven reports whether a new pod of the DaemonSet is Ready on the node, and the old one is gone.
func (d Pod) Proven(ctx context.Context, kept remediations.Before) (remediations.PodProof, error) {
	var b before
	if err := kept.Read(&b); err != nil {
		return remediations.PodProof{}, err
	}
	pods, err := d.onNode(ctx, b.Hostname)
	if err != nil {
		return remediations.PodProof{}, err
	}
	var out remediations.PodProof
	old, ready := false, 0
	for i := range pods {
		switch p := &pods[i]; {
		case string(p.UID) == b.Instance:
			old = true
		case p.DeletionTimestamp == nil && podReady(p):
			ready++
		}
	}
	switch {
	case old:
		out.Missing = fmt.Sprintf("the old pod of DaemonSet %s still exists on Node %s", d.DaemonSet, b.Hostname)
	case len(pods) == 0:
		out.Missing = fmt.Sprintf("DaemonSet %s has no new pod on Node %s yet", d.DaemonSet, b.Hostname)
	case ready == 0:
		out.Missing = fmt.Sprintf("the new pod of DaemonSet %s on Node %s is not Ready", d.DaemonSet, b.Hostname)
	}
	return out, nil
}

func (d Pod) own(ctx context.Context, node string) (*corev1.Pod, error) {
	pods, err := d.onNode(ctx, node)
	if err != nil {
		return nil, err
	}
	switch {
	case len(pods) == 0:
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s has no pod on Node %s; check the DaemonSet's Events, and the node's labels and taints", d.DaemonSet, node)
	case len(pods) > 1:
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s has %d pods on Node %s, perhaps because one is being deleted; Drydock deletes none now", d.DaemonSet, len(pods), node)
	case pods[0].DeletionTimestamp != nil:
		return nil, kit.Refuse(kit.Machine, "pod %s of Node %s is already being deleted", kit.NameOf(&pods[0]), node)
	}
	return &pods[0], nil
}

// onNode checks the UID of each pod's owner, because any pod may have the DaemonSet's labels.
func (d Pod) onNode(ctx context.Context, node string) ([]corev1.Pod, error) {
	ds, err := readDaemonSet(ctx, d.Client, d.DaemonSet)
	if err != nil {
		return nil, err
	}
	if ds.DeletionTimestamp != nil {
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s is being deleted, so no controller would create a new pod", d.DaemonSet)
	}
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return nil, kit.Refuse(kit.Machine, "reading the selector of DaemonSet %s: %v", d.DaemonSet, err)
	}
	var out []corev1.Pod
	o := metav1.ListOptions{LabelSelector: selector.String(), FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(), Limit: kit.PodsPerPage}
	for {
		page, err := d.Client.CoreV1().Pods(d.DaemonSet.Namespace).List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("listing the pods of DaemonSet %s on Node %s: %w", d.DaemonSet, node, err)
		}
		for i := range page.Items {
			// A pod that has succeeded or failed no longer occupies the node.
			if p := &page.Items[i]; metav1.IsControlledBy(p, ds) && !kit.Finished(p) {
				out = append(out, *p)
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return out, nil
		}
	}
}

func readDaemonSet(ctx context.Context, client kubernetes.Interface, name types.NamespacedName) (*appsv1.DaemonSet, error) {
	ds, err := client.AppsV1().DaemonSets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s does not exist; create it again, or correct its name in the configuration", name)
	case err != nil:
		return nil, fmt.Errorf("reading DaemonSet %s: %w", name, err)
	}
	return ds, nil
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
