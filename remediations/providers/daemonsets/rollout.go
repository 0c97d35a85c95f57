package daemonsets

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

const (
	fieldManager = "drydock"
	// restartedAt is the annotation that kubectl rollout restart writes into a pod template.
	restartedAt = "kubectl.kubernetes.io/restartedAt"
)

// Rollouts restarts all pods of a DaemonSet like kubectl rollout restart: a few at a time, by the
// DaemonSet's update strategy.
type Rollouts struct {
	Client kubernetes.Interface
	// Allowed has the DaemonSets that may be restarted.
	Allowed []types.NamespacedName
	Now     func() time.Time
}

var (
	_ engine.Actuator  = Rollouts{}
	_ engine.Surveyor  = Rollouts{}
	_ engine.PodProver = Rollouts{}
)

// Survey checks the DaemonSet. If it cannot be restarted, the step does not begin, and no attempt
// is used up.
func (r Rollouts) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	ds, err := r.look(ctx, m.DaemonSet)
	if err != nil {
		return surveyTrouble(err)
	}
	return remediations.Keeping(beforeRollout(ds, m.Node))
}

func beforeRollout(ds *appsv1.DaemonSet, node string) before {
	return before{
		Instance: fmt.Sprintf("%s/%d", ds.UID, ds.Generation), Hostname: node, Pool: ds.Namespace + "/" + ds.Name,
		Count: int(ds.Status.DesiredNumberScheduled),
	}
}

func unchanged(m engine.Machine, ds *appsv1.DaemonSet) error {
	var was before
	if err := m.Before.Read(&was); err != nil {
		return fmt.Errorf("comparing DaemonSet %s/%s with the record: %w", ds.Namespace, ds.Name, err)
	}
	if was.Instance != beforeRollout(ds, m.Node).Instance {
		return fmt.Errorf("DaemonSet %s/%s has changed since the decision, perhaps because a person corrected it", ds.Namespace, ds.Name)
	}
	return nil
}

// Act writes the present time into the DaemonSet's pod template. It refuses if the DaemonSet has
// changed since Survey.
func (r Rollouts) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	ds, err := r.look(ctx, m.DaemonSet)
	if err == nil {
		err = unchanged(m, ds)
	}
	if err != nil {
		return remediations.CallRefused, err
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": ds.UID, "resourceVersion": ds.ResourceVersion},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{restartedAt: r.Now().UTC().Format(time.RFC3339)},
		}}},
	})
	if err != nil {
		return remediations.CallRefused, fmt.Errorf("writing the change to DaemonSet %s: %w", m.DaemonSet, err)
	}
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	err = r.Client.AppsV1().RESTClient().Patch(types.StrategicMergePatchType).Namespace(ds.Namespace).Resource("daemonsets").Name(ds.Name).
		VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager}, metav1.ParameterCodec).MaxRetries(0).Body(body).Do(ctx).Error()
	if err == nil {
		return remediations.CallAccepted, nil
	}
	return outcomeOf(err), written(err, fmt.Sprintf("restarting the pods of DaemonSet %s", m.DaemonSet))
}

// Proven reports whether the DaemonSet has a newer generation than the recorded one, and all its
// pods are up to date and available.
func (r Rollouts) Proven(ctx context.Context, b remediations.Before) (remediations.PodProof, error) {
	return rolledOut(ctx, r.Client, b)
}

func rolledOut(ctx context.Context, client kubernetes.Interface, kept remediations.Before) (remediations.PodProof, error) {
	var b before
	if err := kept.Read(&b); err != nil {
		return remediations.PodProof{}, err
	}
	name, err := namespacedName(b.Pool)
	if err != nil {
		return remediations.PodProof{}, err
	}
	ds, err := readDaemonSet(ctx, client, name)
	if err != nil {
		return remediations.PodProof{}, err
	}
	out := remediations.PodProof{}
	if uid, generation, _ := strings.Cut(b.Instance, "/"); uid != string(ds.UID) {
		out.Missing = fmt.Sprintf("DaemonSet %s was replaced (other UID)", name)
	} else if generation == fmt.Sprint(ds.Generation) {
		out.Missing = fmt.Sprintf("DaemonSet %s has not changed yet", name)
	} else {
		out.Missing = unfinished(ds)
	}
	return out, nil
}

func (r Rollouts) look(ctx context.Context, text string) (*appsv1.DaemonSet, error) {
	name, err := namespacedName(text)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.Allowed, name) {
		return nil, kit.Refuse(kit.Machine, "Drydock may not restart DaemonSet %s; add it to providers.clusterWide.rolloutRestart", name)
	}
	ds, err := readDaemonSet(ctx, r.Client, name)
	if err != nil {
		return nil, err
	}
	if problem := rollable(ds); problem != "" {
		return nil, kit.Refuse(kit.Machine, "DaemonSet %s %s", name, problem)
	}
	return ds, nil
}

func rollable(ds *appsv1.DaemonSet) string {
	switch s := ds.Status; {
	case ds.DeletionTimestamp != nil:
		return "is being deleted"
	case ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType:
		return fmt.Sprintf("has the update strategy %s, so no controller would restart its pods", ds.Spec.UpdateStrategy.Type)
	case s.ObservedGeneration < ds.Generation || s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
		return "is already being rolled out"
	case s.DesiredNumberScheduled == 0:
		return "has no pods on any node"
	}
	return ""
}

// unfinished returns what is missing, by the same rules as kubectl rollout status, or "" if the
// rollout is complete.
func unfinished(ds *appsv1.DaemonSet) string {
	switch s := ds.Status; {
	case s.ObservedGeneration < ds.Generation:
		return fmt.Sprintf("the controller has not processed the change of DaemonSet %s/%s yet", ds.Namespace, ds.Name)
	case s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d pods of DaemonSet %s/%s are new", s.UpdatedNumberScheduled, s.DesiredNumberScheduled, ds.Namespace, ds.Name)
	case s.NumberAvailable < s.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d new pods of DaemonSet %s/%s are available", s.NumberAvailable, s.DesiredNumberScheduled, ds.Namespace, ds.Name)
	}
	return ""
}

func namespacedName(text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" {
		return types.NamespacedName{}, kit.Refuse(kit.Machine, "%q is not the namespace/name of a DaemonSet", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
