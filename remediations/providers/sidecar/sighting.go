package sidecar

import (
	"context"
	"fmt"
	"time"
)

// Pod identifies a pod, and where it runs.
type Pod struct{ Namespace, Name, UID, Node string }

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Owner identifies the object that decides about a pod's sidecar.
type Owner struct{ APIVersion, Kind, Namespace, Name, UID string }

// Health is what a sidecar said of itself.
type Health string

// The healths, all of them; empty: it was not asked.
const (
	Ready       Health = "Ready"       // the gate is open
	NotReady    Health = "NotReady"    // the gate is closed; nothing else is ever a reason to approve
	Unreachable Health = "Unreachable" // no connection, or no whole answer
	ProbeError  Health = "ProbeError"  // an answer that is neither of the two
)

// Sighting is what Look saw.
type Sighting struct {
	// At is when the look began.
	At time.Time
	// Pod has a UID if the pod was read. Without one, and with Unknown empty, there is no such pod.
	Pod Pod
	// StartedAt is the last start of a container that may have the gate; zero: the pod does not say.
	StartedAt time.Time
	// ClosedSince is since when the SeiNode's controller has found the gate closed, without a break. OpenAt is when that controller
	// found the gate open for the first time. Each is zero where the SeiNode does not say so.
	ClosedSince, OpenAt time.Time
	// Owner is the SeiNode; zero: the pod has none, or it could not be read.
	Owner Owner
	// Health is empty unless Held and Unknown are.
	Health Health
	// Held is a sentence that says why the sidecar is deliberately, or rightly, not to be touched.
	Held string
	// Unknown is a sentence that says why nothing can be said.
	Unknown string
	// Detail is what the probe said, for people.
	Detail string
}

// Look reads the pod, its owner and, unless something holds, its health. It does not fail: what it could not find out is
// in the answer.
func (c *Client) Look(ctx context.Context, namespace, pod string) Sighting {
	s, _ := c.look(ctx, namespace, pod)
	return s
}

// look also says where the sidecar is, if it was probed.
func (c *Client) look(ctx context.Context, namespace, name string) (Sighting, target) {
	s := Sighting{At: c.o.Now(), Pod: Pod{Namespace: namespace, Name: name}}
	pod, unknown := c.readPod(ctx, namespace, name)
	if pod == nil {
		s.Unknown = unknown
		return s, target{}
	}
	s.Pod.UID, s.Pod.Node, s.StartedAt = string(pod.UID), pod.Spec.NodeName, c.startedAt(pod)
	if s.Unknown = c.notSelected(pod); s.Unknown != "" {
		return s, target{}
	}
	says := c.readOwner(ctx, pod)
	s.Owner, s.Held, s.Unknown, s.ClosedSince, s.OpenAt = says.owner, says.held, says.unknown, says.closedSince, says.openAt
	if pod.DeletionTimestamp != nil {
		// Certain, whatever else is not.
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

// against says why a sighting does not allow an approval of that very pod. Empty: it does.
func (s *Sighting) against(p Pod) string {
	switch {
	case s.Unknown != "":
		return s.Unknown
	case s.Pod.UID == "":
		return "there is no such pod any more"
	case p.UID == "" || s.Pod.UID != p.UID:
		return fmt.Sprintf("it is another pod of that name, with the UID %s", s.Pod.UID)
	case s.Pod.Node != p.Node:
		return fmt.Sprintf("it is on node %q", s.Pod.Node)
	case s.Held != "":
		return s.Held
	case s.Health != NotReady:
		return fmt.Sprintf("its sidecar does not wait for an approval (%s): %s", s.Health, s.Detail)
	}
	return ""
}
