package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

const seiNodeLabel = "sei.io/node"

var (
	seiNodes     = schema.GroupVersionResource{Group: "sei.io", Version: "v1alpha1", Resource: "seinodes"}
	seiNodeTasks = schema.GroupVersionResource{Group: "sei.io", Version: "v1alpha1", Resource: "seinodetasks"}
)

// errNoSeiNodes means that the cluster does not have the kind SeiNode, so no pod belongs to one.
var errNoSeiNodes = errors.New("the API server does not serve SeiNodes")

// ownerSays is what the pod's SeiNode means for an approval: held forbids it, and unknown is why
// the SeiNode's state is unknown. closedSince and openAt are results of seiNodeSaw.
type ownerSays struct {
	owner               remediations.Object
	held, unknown       string
	closedSince, openAt time.Time
}

// If the SeiNode cannot be read, its state is unknown, and nothing is approved.
func (c *Client) readOwner(ctx context.Context, pod *corev1.Pod) ownerSays {
	unknown := func(format string, args ...any) ownerSays { return ownerSays{unknown: fmt.Sprintf(format, args...)} }
	name, labelled := pod.Labels[seiNodeLabel]
	if c.o.Owner != settings.OwnerSeiNode || !labelled {
		return ownerSays{}
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return unknown("the label %s of pod %s/%s is not the name of a SeiNode: %q", seiNodeLabel, pod.Namespace, pod.Name, clip(name))
	}
	ctx, cancel := context.WithTimeout(ctx, c.apiTimeout)
	defer cancel()
	node, err := c.seiNode(ctx, pod.Namespace, name)
	switch {
	case errors.Is(err, errNoSeiNodes):
		return ownerSays{}
	case apierrors.IsNotFound(err):
		return unknown("SeiNode %s/%s, which is in the label %s of pod %s, does not exist", pod.Namespace, name, seiNodeLabel, pod.Name)
	case err != nil:
		return unknown("reading SeiNode %s/%s: %s", pod.Namespace, name, clip(err.Error()))
	case node.GetNamespace() != pod.Namespace || node.GetName() != name:
		return unknown("reading SeiNode %s/%s: the API server answered with another object", pod.Namespace, name)
	}
	owner := remediations.Object{
		APIVersion: seiNodes.GroupVersion().String(), Kind: "SeiNode",
		Namespace: pod.Namespace, Name: name, UID: string(node.GetUID()),
	}
	held, why := seiNodeSays(node.Object, pod)
	says := ownerSays{owner: owner, held: about(owner, held), unknown: about(owner, why)}
	says.closedSince, says.openAt = seiNodeSaw(node.Object)
	return says
}

func about(o remediations.Object, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("SeiNode %s/%s %s", o.Namespace, o.Name, text)
}

// seiNode returns errNoSeiNodes only if the API server does not serve SeiNodes at all. "Not found"
// alone can also mean that this SeiNode does not exist.
func (c *Client) seiNode(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	node, err := c.o.Dynamic.Resource(seiNodes).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return node, err
	}
	groups, err := c.o.Client.Discovery().ServerGroupsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("checking whether the API server serves SeiNodes: %w", err)
	}
	if slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == seiNodes.Group }) {
		// The API server may have a newer version of SeiNodes. In that version, fields that this
		// code cannot read may forbid an approval.
		return nil, fmt.Errorf("the API server serves the group %s, but not SeiNodes of version %s", seiNodes.Group, seiNodes.Version)
	}
	return nil, errNoSeiNodes
}
