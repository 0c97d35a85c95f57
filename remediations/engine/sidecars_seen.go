package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"drydock.dev/drydock/remediations"
)

// hostsAsked bounds the pods that one poll looks up; the next one goes on.
const hostsAsked = 32

// hosts says which node a pod's alert belongs on: the one that carries it, else the one that hosts the pod by the API
// server's word; empty: none, or it cannot be said now.
func (e *Engine) hosts(ctx context.Context) func(fingerprint, pod string) string {
	if e.Sidecars == nil {
		return func(string, string) string { return "" }
	}
	carriers := sync.OnceValue(func() map[string]string { // most polls meet no pod's alert
		out := map[string]string{}
		for _, m := range e.roster.Members() {
			if !m.Concerned {
				continue // it carries nothing, so no alert either
			}
			j := remediations.ReadJournal(m.Node)
			if j.Malformed != nil {
				continue // where nothing is decided until a person has looked, nobody finds out that the pod has moved
			}
			for _, a := range j.Alerts {
				out[a.Fingerprint] = m.Node.Name
			}
		}
		return out
	})
	asked := 0
	return func(fingerprint, pod string) string {
		if node, ok := carriers()[fingerprint]; ok {
			return node
		}
		if asked++; asked > hostsAsked {
			return ""
		}
		ctx, cancel := context.WithTimeout(ctx, lastLook)
		defer cancel()
		node, err := e.Sidecars.Hosts(ctx, remediations.PodNamed(pod))
		if err != nil {
			e.Log.Error(err, "which node hosts a pod cannot be read; its alert waits for the next poll", "pod", pod)
			asked = hostsAsked // an API server that does not answer is not asked for each
		}
		return node
	}
}

// lookAtSidecar looks through the provider of the policy.
func (p *passing) lookAtSidecar(t *subject, d remediations.Decision) func(ctx context.Context, began time.Time) any {
	policy := d.Policy
	if policy == nil && t.Record != nil {
		policy = p.Config.Policy(t.Record.Policy)
	}
	if p.Sidecars == nil || policy == nil || len(policy.Plan) == 0 {
		return nil
	}
	provider, pod := policy.Plan[0].Provider, remediations.PodNamed(t.Name)
	return func(ctx context.Context, began time.Time) any {
		g := p.Sidecars.Look(ctx, provider, pod)
		g.At = began
		return &g
	}
}

// transition tells people that a sidecar has begun to wait, or is ready again. What lies between the two is no news.
func (p *passing) transition(t *subject) {
	g, m := t.m.seen.(*remediations.Sighting), t.m
	switch {
	case g.Node != t.of.node || g.Pod.UID == "":
		m.waits = false
	case g.Health == remediations.HealthNotReady && !m.waits:
		m.waits = true
		p.regarding(g, Event{Warning: true, Reason: "SidecarReadinessLost", Action: "Sidecar", Note: fmt.Sprintf("the sidecar of %s is not ready: %s", t.Name, g.Detail)})
	case g.Health == remediations.HealthReady && m.waits:
		m.waits = false
		p.regarding(g, Event{Reason: "SidecarReadinessRestored", Action: "Sidecar", Note: fmt.Sprintf("the sidecar of %s is ready", t.Name)})
	}
}

// regarding sends an Event about the pod, and about the object that it is a part of.
func (e *Engine) regarding(g *remediations.Sighting, event Event) {
	event.About = &remediations.Object{APIVersion: "v1", Kind: "Pod", Namespace: g.Pod.Namespace, Name: g.Pod.Name, UID: g.Pod.UID}
	e.Events.Event("", event)
	if g.Owner.Name != "" {
		owner := g.Owner
		event.About = &owner
		e.Events.Event("", event)
	}
}
