// Package sidecar decides about pods whose sidecar has a gate: the pod's main container waits until
// the sidecar is approved. The repair is that approval. The package has the observation of a
// sidecar, and the proof that an approval worked. It is pure: it uses no client and no clock of its
// own.
package sidecar

import (
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Kind is the kind of target for gated sidecars. The record of a sidecar's repair is on the Node
// that hosts its pod.
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

// Health is the sidecar's answer about its own state.
type Health string

const (
	// HealthReady means that the sidecar's gate is open, so that the pod's main container can
	// continue. HealthNotReady means that the gate is closed. Drydock acts only on HealthNotReady.
	HealthReady    Health = "Ready"
	HealthNotReady Health = "NotReady"
	// HealthUnreachable means that the sidecar did not answer. HealthProbeError means that it gave
	// another answer than ready or not ready.
	HealthUnreachable Health = "Unreachable"
	HealthProbeError  Health = "ProbeError"
)

// Observation is what Drydock last observed of a pod and its sidecar.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Pod is the pod. Its UID is empty if Drydock could not read the pod. If Unknown is empty, too,
	// the pod does not exist.
	Pod remediations.Pod
	// Node is the name of the node that hosts the pod.
	Node string
	// Owner is the object whose controller decides about the sidecar, for example a SeiNode. It is
	// zero if the pod has no such owner, or if Drydock could not read the owner.
	Owner remediations.Object
	// StartedAt is when the sidecar's container last started. If several containers may have the
	// gate, it is the latest start. It is zero if the start is unknown.
	StartedAt time.Time
	// ClosedSince is the first time at which Drydock knew that the gate was closed. Drydock knows
	// of no opening after that time. OpenAt is when Drydock last observed the gate open. Each time
	// is zero if it is unknown.
	ClosedSince, OpenAt time.Time
	// Health is the sidecar's answer. It is empty if Drydock did not query the sidecar. Held or
	// Unknown is then the reason.
	Health Health
	// Held is why the gate is closed on purpose, or empty. Unknown is why the state is unknown, or
	// empty. Detail is the text of the sidecar's answer.
	Held, Unknown, Detail string
}

// against returns the reason why the sidecar must not be approved. The finding is nil if the gate
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

// closedByStart is the longest time between the start of a container and the first proof that its
// gate is closed. Only within this time does the start explain the closed gate. The time is long
// enough for a scrape and the alert's own `for`.
//
// closedByStart is also the longest gap between two observations of a closed gate. Within that gap
// Drydock assumes that the gate has not opened.
const closedByStart = 15 * time.Minute

// cureMargin is the longest time between a sidecar's last answer that it was ready and the recorded
// end of its repair. Drydock takes the end minus this margin as the time of that answer. Otherwise
// an opening of the gate just before a restart of its container would seem to come after the
// restart.
const cureMargin = 30 * time.Second

// Follow copies into g the facts that an earlier observation of the same container had. before is
// that observation, or nil.
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

// Followed reports whether an observation at the time now may still use g in Follow.
func (g *Observation) Followed(now time.Time) bool { return now.Sub(g.At) <= closedByStart }

// deliberate returns why the gate was closed on purpose, or may have been. It returns nil if the
// gate is closed because its container started.
//
// A gate opens once in the life of its process, and a new process starts with a closed gate. If the
// gate was open after the start of its container and is closed now, a person or a program closed
// it. Drydock does not open such a gate. If the gate has been closed since shortly after the start,
// the start is the cause. In all other cases the cause is unknown.
//
// alertBegan is when the alert began to fire without interruption. The gate may have been closed
// earlier, because an alert begins again after each pause of its source. cured is when an earlier
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

// earliest returns the earlier of two times. A zero time is unknown, so earliest then returns the
// other one.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
