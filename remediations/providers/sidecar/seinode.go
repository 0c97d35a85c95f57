package sidecar

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// This file reads these fields of a SeiNode (sei.io/v1alpha1), as its controller writes them. Older
// controllers do not write all of them. A missing field forbids nothing. Only status.phase,
// spec.image and status.currentImage must exist.
//
//	status.phase                       Pending, Initializing, Running, Failed or Terminating.
//	spec.paused                        its pods are scaled to zero.
//	status.plan.phase                  Active, or Complete or Failed, which the controller clears.
//	status.adoptedWorkflow             a SeiNodeTaskWorkflow controls the node, or has failed and
//	                                   holds it.
//	status.conditions                  Paused, and all types that end in InProgress:
//	                                   NodeUpdateInProgress, WorkflowInProgress,
//	                                   DataResetInProgress, MaintenanceInProgress. SidecarReady has
//	                                   what the controller has observed of the gate.
//	spec.maintenance.hold, status.maintenanceHold
//	                                   a requested maintenance hold, and the one in effect.
//	spec.dataResetGeneration, status.dataResetGeneration
//	                                   a requested reset of the node's data, and the last one done.
//	spec.image, status.currentImage    seid's image, and the one that the StatefulSet has rolled out.
//	spec.sidecar.image, status.currentSidecarImage
//	                                   the sidecar's image, if it is not the controller's default.
//
// While one of these fields forbids an approval, the controller also refuses to approve the sidecar
// (to mark it ready). The sidecar itself never refuses.

// gateContainer has the gate, and seidContainer waits until the gate is open.
const (
	gateContainer = "sei-sidecar"
	seidContainer = "seid"
)

// held is why the SeiNode forbids an approval. unknown is why that cannot be known, for example a
// field with an unexpected type.
func seiNodeSays(node map[string]any, pod *corev1.Pod) (held, unknown string) {
	r := reading{node: node}
	for _, rule := range []func(*reading, *corev1.Pod) string{
		deleted, notRunning, paused, underPlan, underWorkflow, underCondition, underMaintenance, underReset, drifted,
	} {
		held = rule(&r, pod)
		if r.unknown != "" {
			return "", r.unknown
		}
		if held != "" {
			return held, ""
		}
	}
	return "", ""
}

func deleted(r *reading, _ *corev1.Pod) string {
	if r.text("metadata", "deletionTimestamp") != "" {
		return "is being deleted"
	}
	return ""
}

func notRunning(r *reading, _ *corev1.Pod) string {
	if phase := r.text("status", "phase"); phase != "Running" {
		return fmt.Sprintf("is in phase %q instead of Running; its controller approves the sidecar when it starts the node", clip(phase))
	}
	return ""
}

func paused(r *reading, _ *corev1.Pod) string {
	if r.truth("spec", "paused") {
		return "is paused (spec.paused)"
	}
	return ""
}

func underPlan(r *reading, _ *corev1.Pod) string {
	plan := r.object("status", "plan")
	if plan == nil {
		return ""
	}
	if phase := r.text("status", "plan", "phase"); phase != "Complete" && phase != "Failed" {
		return fmt.Sprintf("has a plan in progress (status.plan is %q); its controller approves the sidecar itself", clip(phase))
	}
	return ""
}

func underWorkflow(r *reading, _ *corev1.Pod) string {
	if r.object("status", "adoptedWorkflow") == nil {
		return ""
	}
	return fmt.Sprintf("is held by the workflow %q (status.adoptedWorkflow)", clip(r.text("status", "adoptedWorkflow", "name")))
}

func underCondition(r *reading, _ *corev1.Pod) string {
	held := ""
	for _, entry := range r.list("status", "conditions") {
		c, ok := entry.(map[string]any)
		if !ok {
			r.odd("status.conditions")
			return ""
		}
		one := reading{node: c}
		kind, status, reason := one.text("type"), one.text("status"), one.text("reason")
		if one.unknown != "" {
			r.odd("status.conditions")
			return ""
		}
		switch {
		case kind != "Paused" && !strings.HasSuffix(kind, "InProgress"), status == "False":
		case status == "True":
			held = fmt.Sprintf("has the condition %s (%s)", clip(kind), clip(reason))
		default:
			r.unknown = fmt.Sprintf("has the condition %s with the status %q, which is neither True nor False", clip(kind), clip(status))
			return ""
		}
	}
	return held
}

// The gate is closed while the sidecar answers 503, which the condition SidecarReady shows. If it
// is False, closedSince is the time at which the gate closed. If it is True, openAt is the time at
// which the controller found the gate open. In all other cases, both are zero.
func seiNodeSaw(node map[string]any) (closedSince, openAt time.Time) {
	r := reading{node: node}
	for _, entry := range r.list("status", "conditions") {
		c, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		one := reading{node: c}
		if one.text("type") != "SidecarReady" {
			continue
		}
		since, err := time.Parse(time.RFC3339, one.text("lastTransitionTime"))
		switch status := one.text("status"); {
		case err != nil || one.unknown != "":
		case status == "False":
			return since, time.Time{}
		case status == "True":
			return time.Time{}, since
		}
	}
	return time.Time{}, time.Time{}
}

func underMaintenance(r *reading, _ *corev1.Pod) string {
	if hold := r.text("spec", "maintenance", "hold"); hold != "" {
		return fmt.Sprintf("has a maintenance hold (spec.maintenance.hold is %q)", clip(hold))
	}
	if hold := r.text("status", "maintenanceHold"); hold != "" {
		return fmt.Sprintf("has a maintenance hold that is not released yet (status.maintenanceHold is %q)", clip(hold))
	}
	return ""
}

func underReset(r *reading, _ *corev1.Pod) string {
	if want, done := r.number("spec", "dataResetGeneration"), r.number("status", "dataResetGeneration"); want > done {
		return fmt.Sprintf("waits for a reset of its data (spec.dataResetGeneration is %d, status.dataResetGeneration is %d)", want, done)
	}
	return ""
}

// An image in the spec that is not rolled out yet means that an update is in progress. At its end
// the controller approves the sidecar itself.
func drifted(r *reading, pod *corev1.Pod) string {
	want, rolledOut := r.text("spec", "image"), r.text("status", "currentImage")
	if want == "" || want != rolledOut {
		return fmt.Sprintf("needs the image %q, but %q is rolled out; the update approves the sidecar itself", clip(want), clip(rolledOut))
	}
	for _, c := range pod.Spec.Containers {
		if c.Name == seidContainer && c.Image != want {
			return fmt.Sprintf("needs the image %q, but its pod has %q", clip(want), clip(c.Image))
		}
	}
	// The controller also treats an empty status as no difference.
	want, rolledOut = r.text("spec", "sidecar", "image"), r.text("status", "currentSidecarImage")
	if want != "" && rolledOut != "" && want != rolledOut {
		return fmt.Sprintf("needs the sidecar's image %q, but %q is rolled out", clip(want), clip(rolledOut))
	}
	return ""
}

// A missing field is read as the zero value. unknown is the last field with an unexpected type.
type reading struct {
	node    map[string]any
	unknown string
}

func (r *reading) odd(field string) {
	r.unknown = "has the field " + field + " with an unexpected type"
}

func (r *reading) field(path ...string) any {
	v, _, err := unstructured.NestedFieldNoCopy(r.node, path...)
	if err != nil {
		r.odd(strings.Join(path, "."))
		return nil
	}
	return v
}

func typed[T any](r *reading, path []string) (v T) {
	f := r.field(path...)
	if f == nil {
		return v
	}
	v, ok := f.(T)
	if !ok {
		r.odd(strings.Join(path, "."))
	}
	return v
}

func (r *reading) text(path ...string) string           { return typed[string](r, path) }
func (r *reading) truth(path ...string) bool            { return typed[bool](r, path) }
func (r *reading) number(path ...string) int64          { return typed[int64](r, path) }
func (r *reading) list(path ...string) []any            { return typed[[]any](r, path) }
func (r *reading) object(path ...string) map[string]any { return typed[map[string]any](r, path) }
