// Package sidecar decides about the gated sidecars of pods as targets of repairs: the observation
// of a sidecar, and the proof of its approval. It is pure, like the core.
package sidecar

import (
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Kind is the kind of pods' gated sidecars, on the Node that hosts the pod.
var Kind = remediations.TargetKind{
	Kind: remediations.KindSidecar, Unknown: remediations.MisrouteUnknownPod, Selects: "pods of its provider",
	NotAsked: "the policy is about pods' sidecars, and a request on a node names none; it needs an alert",
	Name: func(p *remediations.Policy, labels map[string]string) (string, error) {
		if len(p.Labels) != 2 {
			return "", errors.New("the policy says of no two labels that they name a pod's namespace and the pod")
		}
		pod := remediations.Pod{Namespace: labels[p.Labels[0]], Name: labels[p.Labels[1]]}
		if remediations.ValidName(pod.Namespace, 63, "lower-case letters, digits and '-'", "-") != nil {
			return "", fmt.Errorf("the label %s names no namespace", p.Labels[0])
		}
		if remediations.ValidName(pod.Name, 253, "lower-case letters, digits, '-' and '.'", "-.") != nil {
			return "", fmt.Errorf("the label %s names no pod", p.Labels[1])
		}
		return pod.String(), nil
	},
}

// Health is a sidecar's answer about its own state.
type Health string

const (
	// HealthReady: the sidecar lets its pod continue. HealthNotReady: its gate is closed. Drydock
	// acts on no other state.
	HealthReady    Health = "Ready"
	HealthNotReady Health = "NotReady"
	// HealthUnreachable: there was no answer. HealthProbeError: the answer was neither of the two.
	HealthUnreachable Health = "Unreachable"
	HealthProbeError  Health = "ProbeError"
)

// Observation is what Drydock observed of a pod and its sidecar.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Pod has a UID if the pod was read. If UID and Unknown are empty, the pod does not exist.
	Pod remediations.Pod
	// Node hosts the pod.
	Node string
	// Owner is the object that decides about the sidecar; zero: the pod has none, or it could not
	// be read.
	Owner remediations.Object
	// StartedAt is the last start of a container that may have the gate; zero: unknown.
	StartedAt time.Time
	// ClosedSince is since when the gate is known to be closed without interruption; zero: unknown.
	// OpenAt is when it was last observed open; zero: never, as far as is known.
	ClosedSince, OpenAt time.Time
	// Health is empty if the sidecar was not asked. Held or Unknown says why.
	Health Health
	// Held is why the sidecar is rightly as it is. Unknown is why its state is unknown. Detail is
	// the sidecar's answer.
	Held, Unknown, Detail string
}

// against returns what prevents the approval of the sidecar; nil: its gate is closed, and nothing
// keeps it closed.
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
// `for`. It also bounds the pause between two observations of a closed gate: within it, the gate is
// assumed not to have opened and closed again.
const closedByStart = 15 * time.Minute

// cureMargin is how long before the end of a repair the sidecar may have answered that it was
// ready.
const cureMargin = 30 * time.Second

// Follow adds what an earlier observation of the same container showed. before is nil if there was
// none.
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

// Followed reports whether an observation at now may still need this one.
func (g *Observation) Followed(now time.Time) bool { return now.Sub(g.At) <= closedByStart }

// deliberate returns why a closed gate was closed on purpose, or may have been; nil: the start of
// its container closed it. A gate opens once in the life of its process, and the process forgets
// that at its end. So if a gate was open since the start of its container, a person or a program
// closed it, and it stays closed. If a gate is known to be closed since shortly after the start,
// the start closed it. For all other gates the cause is unknown.
//
// The alert has been firing without interruption since its start, but it may have started late: it
// starts again after each pause of its source.
func (g *Observation) deliberate(alertBegan, cured time.Time) (remediations.Reason, *lifecycle.Finding) {
	at := func(t time.Time) string { return remediations.Instant(t).Format(time.RFC3339) }
	closed, opened := earliest(alertBegan, g.ClosedSince), remediations.Later(g.OpenAt, cured)
	switch {
	case g.StartedAt.IsZero():
		return remediations.ReasonSidecarUnknown, lifecycle.Because("pod %s does not say since when the container of its sidecar runs, so Drydock cannot know whether a restart closed the gate", g.Pod)
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
