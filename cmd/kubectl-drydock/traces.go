package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/owners"
)

type traces struct {
	node string
	// busy is a sentence about the repair in flight, or empty.
	busy          string
	removed, kept []string

	annotations, labels []string
	uncordon            bool
	taints              []corev1.Taint // the taints that stay, if cleanup removes one
	conditions          []corev1.NodeConditionType
}

// consumed are the keys of annotations that request something of Drydock once, for example a
// repair. Cleanup removes them, because the next installation would carry the requests out.
var consumed = []string{remediations.RequestKey, remediations.ApproveKey, remediations.CancelKey, remediations.ResetKey, remediations.BreakGlassKey}

func tracesOn(n *corev1.Node) (traces, error) {
	t := traces{node: n.Name}
	asked, err := owners.Annotation(n, remediations.AttemptKey)
	if err != nil {
		return t, fmt.Errorf("finding out whether Drydock set %s on %s: %w", remediations.AttemptKey, n.Name, err)
	}
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		switch {
		case remediations.Owned(key) || slices.Contains(consumed, key):
			t.annotations, t.removed = append(t.annotations, key), append(t.removed, described(key, n.Annotations[key]))
		case remediations.Relevant(key) && (!asked || key != remediations.AttemptKey):
			t.kept = append(t.kept, fmt.Sprintf("the annotation %s=%q, which a person set; to remove it: kubectl annotate node %s %s-", key, n.Annotations[key], n.Name, key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		switch {
		case remediations.Owned(key):
			t.labels, t.removed = append(t.labels, key), append(t.removed, "label "+key)
		case remediations.Relevant(key):
			t.kept = append(t.kept, fmt.Sprintf("the label %s=%s, which a person set; to remove it: kubectl label node %s %s-", key, n.Labels[key], n.Name, key))
		}
	}
	for _, c := range n.Status.Conditions {
		if announce.Own(c) {
			t.conditions, t.removed = append(t.conditions, c.Type), append(t.removed, "condition "+string(c.Type))
		}
	}
	j := remediations.ReadJournal(n)
	t.findRepair(n, j)
	return t, t.findUndo(n, j, asked)
}

func described(key, value string) string {
	if !strings.HasPrefix(key, remediations.RepairPrefix) {
		return key
	}
	r, err := remediations.DecodeRecordOf(key, value)
	if err != nil {
		return key + " (unreadable)"
	}
	return fmt.Sprintf("%s (repair %s by policy %s, %s)", key, r.ID, r.Policy, r.Phase)
}

// findRepair sets busy. If a record is unreadable, the Node's label with the repair's phase
// decides.
func (t *traces) findRepair(n *corev1.Node, j remediations.Journal) {
	records := j.OtherRepairs
	if j.Record != nil && j.Record.Phase.InFlight() {
		records = append([]*remediations.Record{j.Record}, records...)
	}
	if len(records) > 0 {
		r := records[0]
		t.busy = fmt.Sprintf("repair %s by policy %s is in flight on %s (%s, %s); wait for its end, or end it with `kubectl drydock cancel %s` while Drydock runs", r.ID, r.Policy, n.Name, r.Phase, r.Step, n.Name)
		return
	}
	if phase := remediations.Phase(n.Labels[remediations.PhaseLabel]); j.Malformed != nil && phase.InFlight() {
		t.busy = fmt.Sprintf("the label %s=%s on %s says that a repair is in flight, but its record cannot be read: %v", remediations.PhaseLabel, phase, n.Name, j.Malformed)
	}
}

// findUndo finds the cordon, taints and annotations that Drydock would undo. asked is true if
// Drydock requested a step by an annotation whose key is only in its configuration. findUndo then
// checks who set each annotation.
func (t *traces) findUndo(n *corev1.Node, j remediations.Journal, asked bool) error {
	undo := j.ToUndo()
	for key, r := range j.Records {
		if len(r.Undo) > 0 && len(r.Moves) > 0 {
			t.kept = append(t.kept, fmt.Sprintf("the leadership of location %s, which repair %s (%s) moved from %s", r.Location, r.ID, key, inspect.Led(r.Moves)))
		}
	}
	owned, err := owners.Cordon(n)
	if err != nil {
		return fmt.Errorf("finding out whether Drydock set the cordon of %s: %w", n.Name, err)
	}
	recorded := slices.ContainsFunc(undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon })
	switch {
	case !n.Spec.Unschedulable || !owned:
	case recorded:
		t.uncordon = true
		t.removed = append(t.removed, "Drydock's cordon")
	default:
		t.kept = append(t.kept, fmt.Sprintf("the cordon: Drydock set it, but no record on the node names it; to remove it: kubectl uncordon %s", n.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		recorded := slices.ContainsFunc(undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoAnnotation && u.Key == key })
		if !recorded && (!asked || remediations.Relevant(key) && key != remediations.AttemptKey) {
			continue
		}
		ours, err := owners.Annotation(n, key)
		if err != nil {
			return fmt.Errorf("finding out whether Drydock set the annotation %s on %s: %w", key, n.Name, err)
		}
		if ours {
			t.annotations, t.removed = append(t.annotations, key), append(t.removed, "annotation "+key)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(taint corev1.Taint) bool {
		ours := slices.ContainsFunc(undo, func(u remediations.Undo) bool { return u.Set(taint) })
		if ours {
			t.removed = append(t.removed, "taint "+taint.Key)
		}
		return ours
	})
	if len(rest) < len(n.Spec.Taints) {
		t.taints = append([]corev1.Taint{}, rest...)
	}
	return nil
}

// unannounce sets n's resource version to the new one, so that the API server accepts the next
// patch.
func (t *traces) unannounce(ctx context.Context, c inspect.Client, n *corev1.Node, dryRun bool) error {
	if len(t.conditions) == 0 {
		return nil
	}
	o := metav1.PatchOptions{FieldManager: actions.FieldManager}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	text, err := announce.Patch(n, nil, t.conditions)
	if err != nil {
		return err
	}
	after, err := c.Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, text, o, "status")
	if err == nil && !dryRun {
		n.ResourceVersion = after.ResourceVersion
	}
	return err
}

// patch removes all traces except the conditions. The API server refuses it if the Node has changed
// since it was read.
func (t *traces) patch(n *corev1.Node) map[string]any {
	annotations, labels, spec := map[string]any{}, map[string]any{}, map[string]any{}
	for _, key := range t.annotations {
		annotations[key] = nil
	}
	for _, key := range t.labels {
		labels[key] = nil
	}
	if t.uncordon {
		spec["unschedulable"] = nil
	}
	if t.taints != nil {
		spec["taints"] = t.taints
	}
	return map[string]any{
		"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": annotations, "labels": labels},
		"spec":     spec,
	}
}
