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

// CNI applies the manifest of the cluster's CNI again, from a file or a ConfigMap. It downloads
// nothing.
type CNI struct {
	Client kubernetes.Interface
	// File is the path of the manifest. If it is empty, the manifest is in ConfigMap, under Key.
	File      string
	ConfigMap types.NamespacedName
	Key       string
	// DaemonSet must be in the manifest and in the cluster, because the versions in both are
	// compared.
	DaemonSet types.NamespacedName
}

var (
	_ engine.Actuator  = CNI{}
	_ engine.Surveyor  = CNI{}
	_ engine.PodProver = CNI{}
)

// Survey applies all objects as a dry run. If the API server would refuse one, the step does not
// begin, so no apply stops halfway and no attempt is used up.
func (c CNI) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	_, installed, err := c.look(ctx)
	if err != nil {
		return surveyTrouble(err)
	}
	return remediations.Keeping(beforeRollout(installed, m.Node))
}

// Act applies the manifest, one object after the other, first the objects that pods need.
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
// date and available. New pods are not required, because the DaemonSet may have matched the
// manifest before.
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

// A Refusal means a wrong manifest, also for HTTP 500: the API server answers it to an object that
// does not fit its schema. Any other error concerns every node.
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

// An object of a kind that Drydock does not write must be in the cluster as in the manifest.
// Otherwise a person must apply the manifest.
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

// pin prevents a downgrade of a DaemonSet that was updated after the versions were compared: with
// the UID and resourceVersion, the API server refuses the write. It first reads the DaemonSet
// again, because each change of its status changes the resourceVersion.
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

// apply forces conflicts: other field managers lose the fields that are in the manifest.
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

// client-go must not repeat the request, because a repeated request could arrive long after the
// decision.
func (c CNI) request(verb string, o manifestObject) *rest.Request {
	version, root := o.kind.GroupVersion(), "/apis"
	if version.Group == "" {
		root = "/api"
	}
	return c.Client.CoreV1().RESTClient().Verb(verb).AbsPath(root, version.Group, version.Version).
		NamespaceIfScoped(o.GetNamespace(), o.kind.namespaced).Resource(o.kind.resource).Name(o.GetName()).MaxRetries(0)
}

func (m *manifest) applied() []manifestObject {
	return slices.DeleteFunc(slices.Clone(m.objects), func(o manifestObject) bool { return !o.kind.applied })
}

// An error about the manifest's content is a Refusal, and concerns only this repair. If the
// manifest cannot be read at all, the error concerns every node.
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
