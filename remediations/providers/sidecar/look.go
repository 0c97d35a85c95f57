package sidecar

import (
	"context"
	"fmt"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// Look reads the pod and its SeiNode, if it has one. If neither forbids an approval, it also probes
// the sidecar's health. What is unknown is in the Observation.
func (c *Client) Look(ctx context.Context, p remediations.Pod) kind.Observation {
	s, _ := c.look(ctx, p)
	return s
}

// The address is zero if look has not probed the sidecar.
func (c *Client) look(ctx context.Context, p remediations.Pod) (kind.Observation, target) {
	s := kind.Observation{At: c.o.Now(), Pod: remediations.Pod{Namespace: p.Namespace, Name: p.Name}}
	pod, unknown := c.readPod(ctx, p.Namespace, p.Name)
	if pod == nil {
		s.Unknown = unknown
		return s, target{}
	}
	s.Pod.UID, s.Node, s.StartedAt = string(pod.UID), pod.Spec.NodeName, c.startedAt(pod)
	if s.Unknown = c.notSelected(pod); s.Unknown != "" {
		return s, target{}
	}
	says := c.readOwner(ctx, pod)
	s.Owner, s.Held, s.Unknown, s.ClosedSince, s.OpenAt = says.owner, says.held, says.unknown, says.closedSince, says.openAt
	if pod.DeletionTimestamp != nil {
		// The deletion is certain, even if other facts are unknown.
		s.Held, s.Unknown = fmt.Sprintf("pod %s is being deleted", s.Pod), ""
	}
	if s.Held != "" || s.Unknown != "" {
		return s, target{}
	}
	at, unknown := c.locate(pod)
	if unknown != "" {
		s.Unknown = unknown
		return s, target{}
	}
	s.Health, s.Detail = c.probe(ctx, at)
	c.probes.count(s.Health)
	return s, at
}

func against(s *kind.Observation, a engine.Approval) string {
	switch {
	case s.Unknown != "":
		return s.Unknown
	case s.Pod.UID == "":
		return "the pod no longer exists"
	case a.Pod.UID == "" || s.Pod.UID != a.Pod.UID:
		return fmt.Sprintf("the pod was replaced by another one with the UID %s", s.Pod.UID)
	case s.Node != a.Node:
		return fmt.Sprintf("the pod is now on node %q", s.Node)
	case s.Held != "":
		return s.Held
	case s.Health != kind.HealthNotReady:
		return fmt.Sprintf("the sidecar does not wait for an approval (%s): %s", s.Health, s.Detail)
	}
	return ""
}
