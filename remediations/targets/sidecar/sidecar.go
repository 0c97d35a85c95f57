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

// Kind is the kind of target for sidecars with a gate. Their record is on the Node that runs the
// pod.
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
	// HealthReady means that the gate is open and the pod's main container can continue. Drydock
	// acts only on HealthNotReady.
	HealthReady    Health = "Ready"
	HealthNotReady Health = "NotReady"
	// HealthProbeError means an answer other than ready or not ready.
	HealthUnreachable Health = "Unreachable"
	HealthProbeError  Health = "ProbeError"
)

// Observation is what was last observed of a pod and its sidecar.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Pod has an empty UID if it could not be read. If Unknown is empty, too, the pod does not
	// exist.
	Pod  remediations.Pod
	Node string
	// Owner has the controller that decides about the sidecar, for example a SeiNode. It is zero if
	// there is none or if it could not be read.
	Owner remediations.Object
	// StartedAt is when the container last started. If several may have the gate, it is the latest
	// start. Zero means unknown.
	StartedAt time.Time
	// ClosedSince is when the gate was first known to be closed, without an opening since. OpenAt
	// is when it was last observed open. Zero means unknown.
	ClosedSince, OpenAt time.Time
	// Health is empty if the sidecar was not asked. Held or Unknown then says why.
	Health Health
	// Held is why the gate is closed on purpose. Detail is the sidecar's answer.
	Held, Unknown, Detail string
}

// against returns why the sidecar must not be approved. The finding is nil if the gate is closed
// and no owner keeps it closed.
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

// closedByStart is how long after the start of a container that start explains a closed gate. It is
// long enough for a scrape and the alert's own `for`.
//
// It is also the longest gap between two observations of a closed gate during which the gate counts
// as closed.
const closedByStart = 15 * time.Minute

// cureMargin is the longest time between a sidecar's last ready answer and the recorded end of its
// repair. Without it, an opening of the gate just before a restart would seem to come after the
// restart.
const cureMargin = 30 * time.Second

// Follow copies the facts of an earlier observation of the same container. before may be nil.
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

// Followed reports whether an observation at now may still use g in Follow.
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

// earliest returns the other time if one is zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
