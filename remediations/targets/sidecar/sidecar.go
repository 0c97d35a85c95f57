// Package sidecar decides about the gated sidecars of pods as targets of repairs. It has the
// observation of a sidecar, and the proof of its approval. It is pure, like the core.
package sidecar

import (
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Kind is the target kind of pods' gated sidecars. A sidecar is repaired through the Node that
// hosts its pod.
var Kind = remediations.TargetKind{
	Kind: remediations.KindSidecar, Unknown: remediations.MisrouteUnknownPod, Selects: "pods of its provider",
	NotAsked: "the policy repairs the sidecars of pods, and a request on a node cannot name a pod; only an alert can start this repair",
	Name: func(p *remediations.Policy, labels map[string]string) (string, error) {
		if len(p.Labels) != 2 {
			return "", errors.New("the policy must name two labels: one with the pod's namespace and one with the pod's name")
		}
		pod := remediations.Pod{Namespace: labels[p.Labels[0]], Name: labels[p.Labels[1]]}
		if remediations.ValidName(pod.Namespace, 63, "lower-case letters, digits and '-'", "-") != nil {
			return "", fmt.Errorf("the label %s does not have the name of a namespace", p.Labels[0])
		}
		if remediations.ValidName(pod.Name, 253, "lower-case letters, digits, '-' and '.'", "-.") != nil {
			return "", fmt.Errorf("the label %s does not have the name of a pod", p.Labels[1])
		}
		return pod.String(), nil
	},
}

// Health is what a sidecar answers about its own state.
type Health string

const (
	// HealthReady means that the sidecar lets its pod continue. HealthNotReady means that its gate is
	// closed. Drydock acts only on HealthNotReady.
	HealthReady    Health = "Ready"
	HealthNotReady Health = "NotReady"
	// HealthUnreachable means that there was no answer. HealthProbeError means that the answer was
	// neither ready nor not ready.
	HealthUnreachable Health = "Unreachable"
	HealthProbeError  Health = "ProbeError"
)

// Observation is what Drydock observed of a pod and its sidecar.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Pod is the pod. It has a UID if Drydock could read it. If the UID and Unknown are both empty,
	// the pod does not exist.
	Pod remediations.Pod
	// Node is the name of the node that hosts the pod.
	Node string
	// Owner is the object whose controller decides about the sidecar. It is zero if the pod has no
	// such owner, or if Drydock could not read the owner.
	Owner remediations.Object
	// StartedAt is the last start of a container that may have the gate. It is zero if the start is
	// unknown.
	StartedAt time.Time
	// ClosedSince is since when the gate is known to be closed without interruption. OpenAt is when
	// Drydock last observed the gate open. Each is zero if unknown.
	ClosedSince, OpenAt time.Time
	// Health is empty if Drydock did not query the sidecar. Held or Unknown then says why.
	Health Health
	// Held is why the sidecar's state is intended. Unknown is why the state is unknown. Detail is the
	// sidecar's answer.
	Held, Unknown, Detail string
}

// against returns what prevents the approval of the sidecar. It returns nil if the sidecar's gate
// is closed and no owner keeps it closed.
func (g *Observation) against() (remediations.Reason, *lifecycle.Finding) {
	switch {
	case g.Unknown != "":
		return remediations.ReasonSidecarUnknown, lifecycle.Because("%s", text.Line(g.Unknown, 300))
	case g.Held != "":
		return remediations.ReasonSidecarHeld, lifecycle.Because("%s", text.Line(g.Held, 300))
	case g.Health == HealthReady:
		return remediations.ReasonAlertResolved, lifecycle.Because("the sidecar of %s answers that it is ready; its alert will end", g.Pod)
	case g.Health == HealthNotReady:
		return "", nil
	}
	return remediations.ReasonSidecarUnknown, lifecycle.Because("the sidecar of %s does not say whether it is ready or waiting: %s; no data is not a fault", g.Pod, text.Line(g.Detail, 200))
}

// closedByStart is how soon after the start of its container a gate must be known to be closed, so
// that the start explains the closed gate. It covers the time until a scrape, and the alert's own
// `for`. It also bounds the pause between two observations of a closed gate: within it, Drydock
// assumes that the gate did not open.
const closedByStart = 15 * time.Minute

// cureMargin is the longest time between a sidecar's last answer that it was ready and the recorded
// end of its repair. Without the margin, an opening just before a restart of the container would
// count as an opening after the restart.
const cureMargin = 30 * time.Second

// Follow adds to g what an earlier observation of the same container showed. before is nil if there
// was none.
func (g *Observation) Follow(before *Observation) {
	if g.Health == HealthNotReady && g.ClosedSince.IsZero() {
		g.ClosedSince = g.At
	}
	if before == nil || before.Pod != g.Pod || !before.StartedAt.Equal(g.StartedAt) {
		return
	}
	g.OpenAt = remediations.Later(g.OpenAt, before.OpenAt)
	switch {
	case before.Health == HealthReady:
		g.OpenAt = remediations.Later(g.OpenAt, before.At)
	case before.Health == HealthNotReady && g.Health == HealthNotReady && g.At.Sub(before.At) <= closedByStart:
		g.ClosedSince = earliest(g.ClosedSince, before.ClosedSince)
	}
}

// Followed reports whether a later observation at now may still need g for Follow.
func (g *Observation) Followed(now time.Time) bool { return now.Sub(g.At) <= closedByStart }

// deliberate returns why a closed gate was closed on purpose, or may have been. It returns nil if
// the start of the container closed the gate.
//
// A gate opens once in the life of its process, and a new process starts with a closed gate. So if
// a gate was open after the start of its container and is closed now, a person or a program closed
// it, and it stays closed. If a gate is known to be closed since shortly after the start, the start
// closed it. For all other gates the cause is unknown.
//
// alertBegan is when the alert began to fire without interruption. The gate may have been closed
// earlier, because an alert starts again after each pause of its source. cured is when an earlier
// repair last observed the gate open.
func (g *Observation) deliberate(alertBegan, cured time.Time) (remediations.Reason, *lifecycle.Finding) {
	at := func(t time.Time) string { return remediations.Instant(t).Format(time.RFC3339) }
	closed, opened := earliest(alertBegan, g.ClosedSince), remediations.Later(g.OpenAt, cured)
	switch {
	case g.StartedAt.IsZero():
		return remediations.ReasonSidecarUnknown, lifecycle.Because("pod %s does not show when the container of its sidecar started, so Drydock cannot know whether a restart closed the gate", g.Pod)
	case opened.After(g.StartedAt):
		return remediations.ReasonSidecarHeld, lifecycle.Because("the gate of the sidecar of %s was open at %s, after its container had started at %s; a person or a program has closed it since. Open the gate by hand, or restart the container",
			g.Pod, at(opened), at(g.StartedAt))
	case closed.IsZero() || closed.After(g.StartedAt.Add(closedByStart)):
		return remediations.ReasonSidecarUnknown, lifecycle.Because("the container of the sidecar of %s started at %s, but its gate is known to be closed only since %s; Drydock cannot know whether the start or a person closed it. Open the gate by hand, or restart the container",
			g.Pod, at(g.StartedAt), at(closed))
	}
	return "", nil
}

// earliest returns the earlier of two times; a zero time is unknown.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
