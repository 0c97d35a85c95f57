// Package sidecar is what is true of the gated sidecars of pods alone, as targets of repairs: what is seen of one, and how its approval
// is proven. It is pure, as the core is.
package sidecar

import (
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Kind are the gated sidecars of pods, on the Node that hosts their pods.
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

// Health is what a sidecar answers when it is asked how it is.
type Health string

const (
	// HealthReady: it lets its pod go on. HealthNotReady: its gate is closed. Nothing else is ever acted upon.
	HealthReady    Health = "Ready"
	HealthNotReady Health = "NotReady"
	// HealthUnreachable: there was no answer. HealthProbeError: the answer is neither of the two.
	HealthUnreachable Health = "Unreachable"
	HealthProbeError  Health = "ProbeError"
)

// Observation is what was seen of a pod and its sidecar.
type Observation struct {
	// At is when looking began.
	At time.Time
	// Pod is as it is now; its UID is empty where there is no such pod.
	Pod remediations.Pod
	// Node hosts the pod.
	Node string
	// Owner is the object that the pod is a part of, where it has one that decides about the sidecar.
	Owner remediations.Object
	// StartedAt is the last start of a container that may have the gate; zero: not known.
	StartedAt time.Time
	// Health is empty where it was not asked for.
	Health Health
	// Held says why the sidecar is rightly as it is; Unknown why nothing can be said; Detail what the sidecar answered.
	Held, Unknown, Detail string
}

// against says what there is to say against approving the sidecar; nil: its gate is closed, and nothing keeps it so.
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
	return remediations.ReasonSidecarUnknown, lifecycle.Because("the sidecar of %s says neither that it is ready nor that it waits: %s; no data is not a fault", g.Pod, text.Line(g.Detail, 200))
}

// closedByStart is how long before its alert the container of a gate may have been started, if the start is to explain why
// the gate is closed: the time to be scraped, and the alert's own for.
const closedByStart = 15 * time.Minute

// deliberate says why a closed gate was closed on purpose, or may have been; nil: its container was started shortly before
// the alert began. A gate opens once in the life of its process, and the process forgets that at its end. If the process
// was running long before the alert began, then somebody closed the gate, and nobody but that person opens it.
func (g *Observation) deliberate(alertBegan time.Time) (remediations.Reason, *lifecycle.Finding) {
	switch {
	case g.StartedAt.IsZero():
		return remediations.ReasonSidecarUnknown, lifecycle.Because("pod %s does not say since when the container of its sidecar runs, so nobody can tell whether a restart closed the gate", g.Pod)
	case g.StartedAt.Add(closedByStart).Before(alertBegan):
		return remediations.ReasonSidecarHeld, lifecycle.Because("the sidecar of %s was closed on purpose: its container has run since %s, and its alert began only at %s. Open it by hand, or restart its container",
			g.Pod, remediations.Instant(g.StartedAt).Format(time.RFC3339), remediations.Instant(alertBegan).Format(time.RFC3339))
	}
	return "", nil
}
