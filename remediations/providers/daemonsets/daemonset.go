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

// Pod restarts a node's own pod of one DaemonSet: it deletes the pod, and the DaemonSet's
// controller makes another one from the DaemonSet's present template. It is an engine.Actuator, an
// engine.Surveyor and an engine.PodProver.
type Pod struct {
	Client    kubernetes.Interface
	DaemonSet types.NamespacedName
}

var (
	_ engine.Actuator  = Pod{}
	_ engine.Surveyor  = Pod{}
	_ engine.PodProver = Pod{}
)

// Survey finds the pod, so that a missing pod spends no attempt, and so that its UID is on record
// before it goes.
func (d Pod) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	pod, err := d.own(ctx, m.Node)
	if err != nil {
		return surveyTrouble(err)
	}
	return remediations.Keeping(before{Instance: string(pod.UID), Hostname: m.Node, Pool: d.DaemonSet.String()})
}

// before is the state before a restart, in the names that records have had since their first
// version.
type before struct {
	// Instance is the pod's UID; for a rollout, the DaemonSet's UID and its generation.
	Instance string `json:"instance"`
	// Hostname is the Node, Pool the DaemonSet, Count how many pods it should have.
	Hostname string `json:"hostname"`
	Pool     string `json:"pool"`
	Count    int    `json:"count"`
}

// surveyTrouble distinguishes an answer of the API server, which concerns one node, from a missing
// answer, which concerns all nodes.
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

// Act deletes the pod that was there before the intent, and not another pod of that name.
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
		return remediations.CallRefused, fmt.Errorf("pod %s of Node %s is another one than before: it was restarted in the meantime", kit.NameOf(pod), m.Node)
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

// written returns the error of a write. An error that may pass (the API server is busy, or refuses
// rights that it granted a moment ago) spends no attempt.
func written(err error, doing string) error {
	if !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &kit.Refusal{Why: kit.Passing, Again: remediations.AskPassing, Text: doing + ": " + err.Error(), Cause: err}
}

// delete deletes exactly this pod. The client must not send the request again by itself, which
// could be long after the intent.
func (d Pod) delete(ctx context.Context, pod *corev1.Pod) error {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	return d.Client.CoreV1().RESTClient().Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		MaxRetries(0).Body(&o).Do(ctx).Error()
}

// outcomeOf returns the outcome of a failed write: refused if the API server certainly changed
// nothing.
func outcomeOf(err error) remediations.CallOutcome {
	if apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err) || kit.Final(err) {
		return remediations.CallRefused
	}
	return remediations.CallUnknown
}

// Proven reports whether another pod of the DaemonSet runs on the node in place of the old one.
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
		out.Missing = fmt.Sprintf("the old pod of DaemonSet %s is still on Node %s", d.DaemonSet, b.Hostname)
	case len(pods) == 0:
		out.Missing = fmt.Sprintf("DaemonSet %s has made no pod for Node %s yet", d.DaemonSet, b.Hostname)
	case ready == 0:
		out.Missing = fmt.Sprintf("the new pod of DaemonSet %s on Node %s is not Ready", d.DaemonSet, b.Hostname)
	}
	return out, nil
}

// own returns the DaemonSet's only pod on the node.
func (d Pod) own(ctx context.Context, node string) (*corev1.Pod, error) {
	pods, err := d.onNode(ctx, node)
	if err != nil {
		return nil, err
	}
	switch {
	case len(pods) == 0:
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s has no pod on Node %s; look at its Events, and at the node's labels and taints", d.DaemonSet, node)
	case len(pods) > 1:
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s has %d pods on Node %s, and one may be on its way out; nothing is deleted while that is so", d.DaemonSet, len(pods), node)
	case pods[0].DeletionTimestamp != nil:
		return nil, kit.Refuse(kit.Machine, "pod %s of Node %s is on its way out already", kit.NameOf(&pods[0]), node)
	}
	return &pods[0], nil
}

// onNode returns all pods of the DaemonSet on the node. It selects those that the DaemonSet owns by
// its UID, since any pod may have the labels. An error is not an answer; it never means that there
// are no pods.
func (d Pod) onNode(ctx context.Context, node string) ([]corev1.Pod, error) {
	ds, err := readDaemonSet(ctx, d.Client, d.DaemonSet)
	if err != nil {
		return nil, err
	}
	if ds.DeletionTimestamp != nil {
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s is being deleted: no controller would make another pod", d.DaemonSet)
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
			// A pod that has ended by itself no longer occupies the node.
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
