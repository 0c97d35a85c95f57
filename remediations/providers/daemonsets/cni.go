package daemonsets

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// CNI carries out the repair step apply-cni: it applies the manifest of the cluster's CNI again.
// Drydock downloads nothing. The manifest is in a file, or in a ConfigMap under a key. CNI
// implements engine.Actuator, engine.Surveyor and engine.PodProver.
type CNI struct {
	Client kubernetes.Interface
	// File is the path of the manifest. If it is empty, the manifest is the value of Key in
	// ConfigMap.
	File      string
	ConfigMap types.NamespacedName
	Key       string
	// DaemonSet is the CNI's DaemonSet. It must be in the manifest and in the cluster, because
	// Drydock compares the version in the manifest with the version in the cluster.
	DaemonSet types.NamespacedName
}

var (
	_ engine.Actuator  = CNI{}
	_ engine.Surveyor  = CNI{}
	_ engine.PodProver = CNI{}
)

// Survey reads the manifest and the cluster, and applies all objects as a dry run. If the API
// server would refuse an object, the step does not begin. So no attempt is used up, and no apply
// stops halfway.
func (c CNI) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	_, installed, err := c.look(ctx)
	if err != nil {
		return surveyTrouble(err)
	}
	return remediations.Keeping(beforeRollout(installed, m.Node))
}

// Act applies the manifest, one object after the other. It begins with the objects that pods need.
func (c CNI) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	wanted, installed, err := c.look(ctx)
	if err == nil {
		err = unchanged(m, installed)
	}
	if err != nil {
		return remediations.CallRefused, err
	}
	objects := wanted.applied()
	for i, o := range objects {
		outcome := remediations.CallRefused
		err := c.pin(ctx, o, installed)
		if err == nil {
			err = mayStill()
		}
		if err == nil {
			if err = c.apply(ctx, o, false); err == nil {
				continue
			}
			outcome = outcomeOf(err)
		}
		if i > 0 {
			outcome = remediations.CallUnknown
		}
		return outcome, written(err, fmt.Sprintf("applying %s, after %d of %d objects", o, i, len(objects)))
	}
	return remediations.CallAccepted, nil
}

// Proven reports whether the DaemonSet is not older than the manifest, and all its pods are up to
// date and available. A new generation and new pods are not required, because the DaemonSet may
// have matched the manifest before.
func (c CNI) Proven(ctx context.Context, b remediations.Before) (remediations.PodProof, error) {
	wanted, err := c.manifest(ctx)
	if err != nil {
		return remediations.PodProof{}, err
	}
	live, err := readDaemonSet(ctx, c.Client, c.DaemonSet)
	if err != nil {
		return remediations.PodProof{}, err
	}
	out := remediations.PodProof{Missing: unfinished(live)}
	if _, err := neverOlder(wanted.daemonSet, live); err != nil {
		out.Missing = fmt.Sprintf("DaemonSet %s differs from the manifest: %v", c.DaemonSet, err)
	}
	return out, nil
}

// look returns the manifest, and the DaemonSet in the cluster. It returns an error if the manifest
// must not be applied now.
func (c CNI) look(ctx context.Context) (*manifest, *appsv1.DaemonSet, error) {
	wanted, err := c.manifest(ctx)
	if err != nil {
		return nil, nil, err
	}
	installed, err := readDaemonSet(ctx, c.Client, c.DaemonSet)
	if err != nil {
		return nil, nil, err
	}
	if installed.DeletionTimestamp != nil {
		return nil, nil, kit.Refuse(kit.Machine, "DaemonSet %s is being deleted", c.DaemonSet)
	}
	if _, err := neverOlder(installed, wanted.daemonSet); err != nil {
		return nil, nil, err
	}
	for _, o := range wanted.objects {
		if !o.kind.applied {
			err = c.mustBeThere(ctx, o)
		} else {
			err = c.try(ctx, o)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return wanted, installed, nil
}

// try applies the object as a dry run. If the manifest is wrong, the error is a Refusal. HTTP 500
// also counts as a wrong manifest: the API server answers it to an object that does not fit its
// schema. Any other error, for example of missing rights, concerns every node.
func (c CNI) try(ctx context.Context, o manifestObject) error {
	err := c.apply(ctx, o, true)
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), !kit.Final(err) && !apierrors.IsInternalError(err):
		return fmt.Errorf("trying to apply %s: %w", o, err)
	}
	return kit.Refuse(kit.Machine, "the API server would refuse %s: %s", o, kit.Brief(err))
}

// mustBeThere checks an object of a kind that Drydock does not write. It returns an error if the
// object is missing in the cluster, or differs from the manifest. A person must then apply the
// manifest.
func (c CNI) mustBeThere(ctx context.Context, o manifestObject) error {
	text, err := c.request("GET", o).SetHeader("Accept", "application/json").Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return kit.Refuse(kit.Machine, "%s is not in the cluster, and Drydock does not create objects of that kind; apply the manifest yourself", o)
	case err != nil:
		return fmt.Errorf("reading %s: %w", o, err)
	}
	live := &unstructured.Unstructured{}
	if err := live.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("reading %s: %w", o, err)
	}
	want := o.DeepCopy().Object
	unstructured.RemoveNestedField(want, "metadata")
	if at := differs("", want, live.Object); at != "" {
		return kit.Refuse(kit.Machine, "%s differs from the manifest at %s, and Drydock does not change objects of that kind; apply the manifest yourself", o, at[1:])
	}
	return nil
}

// pin prevents a downgrade of a DaemonSet that was updated after Drydock compared the versions. It
// sets the DaemonSet's UID and resourceVersion on the object, so that the API server refuses the
// write if the DaemonSet has changed. pin first reads the DaemonSet again, because each change of
// its status changes the resourceVersion.
func (c CNI) pin(ctx context.Context, o manifestObject, installed *appsv1.DaemonSet) error {
	if o.kind.Kind != "DaemonSet" || o.GetName() != installed.Name {
		return nil
	}
	now, err := readDaemonSet(ctx, c.Client, c.DaemonSet)
	if err != nil {
		return err
	}
	if now.UID != installed.UID || now.Generation != installed.Generation {
		return kit.Refuse(kit.Machine, "DaemonSet %s has changed since the decision, perhaps because a person corrected it", c.DaemonSet)
	}
	o.SetUID(now.UID)
	o.SetResourceVersion(now.ResourceVersion)
	return nil
}

// apply writes the object by server-side apply. It forces conflicts: other field managers lose the
// fields that are in the manifest. If dry is true, the API server stores nothing.
func (c CNI) apply(ctx context.Context, o manifestObject, dry bool) error {
	body, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("writing %s: %w", o, err)
	}
	options := metav1.PatchOptions{FieldManager: fieldManager, Force: ptr.To(true)}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return c.request("PATCH", o).SetHeader("Content-Type", string(types.ApplyYAMLPatchType)).VersionedParams(&options, scheme.ParameterCodec).
		Body(body).Do(ctx).Error()
}

// request returns a request for the object. client-go never repeats this request, because a
// repeated request could arrive long after Drydock's decision.
func (c CNI) request(verb string, o manifestObject) *rest.Request {
	version, root := o.kind.GroupVersion(), "/apis"
	if version.Group == "" {
		root = "/api"
	}
	return c.Client.CoreV1().RESTClient().Verb(verb).AbsPath(root, version.Group, version.Version).
		NamespaceIfScoped(o.GetNamespace(), o.kind.namespaced).Resource(o.kind.resource).Name(o.GetName()).MaxRetries(0)
}

// applied returns the manifest's objects that Drydock writes. The others must already exist.
func (m *manifest) applied() []manifestObject {
	return slices.DeleteFunc(slices.Clone(m.objects), func(o manifestObject) bool { return !o.kind.applied })
}

// manifest reads the manifest from its file or ConfigMap. An error about its content is a Refusal,
// and concerns only this repair. If the manifest cannot be read at all, the error concerns every
// node.
func (c CNI) manifest(ctx context.Context) (*manifest, error) {
	if c.File == "" {
		found, err := c.Client.CoreV1().ConfigMaps(c.ConfigMap.Namespace).Get(ctx, c.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the manifest in ConfigMap %s: %w", c.ConfigMap, err)
		}
		text, ok := found.Data[c.Key]
		if !ok {
			return nil, kit.Refuse(kit.Machine, "ConfigMap %s has no key %s with the manifest", c.ConfigMap, c.Key)
		}
		return readManifest([]byte(text), c.DaemonSet)
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	return readManifest(data, c.DaemonSet)
}
