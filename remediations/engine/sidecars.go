package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// Approval is what a sidecar is approved by.
type Approval struct {
	Provider string
	// Pod has the UID for which the decision was made, Node hosts it. Task is the id of the sidecar's task.
	Pod  remediations.Pod
	Node string
	Task string
}

// Sidecars looks at the gated sidecars of pods, and approves them.
type Sidecars interface {
	// Hosts says which node hosts the pod; empty: none does, or there is no such pod.
	Hosts(ctx context.Context, p remediations.Pod) (node string, err error)
	// Look reads the pod, its owner, and how the sidecar says that it is. It does not fail: what it could not find out is
	// in the answer. It changes nothing.
	Look(ctx context.Context, provider string, p remediations.Pod) sidecar.Observation
	// Approve looks once more, asks mayStill at the very last moment, and approves. The outcome is never empty; the error
	// says why it is not accepted.
	Approve(ctx context.Context, a Approval, mayStill func() error) (remediations.CallOutcome, error)
}

// sidecarsNamed bounds the exhausted sidecars that the ledger names.
const sidecarsNamed = 20

// sidecars are those of the node's pods.
var sidecars = kind{
	of: remediations.KindSidecar, sinceSeen: true,
	carrier: (*Engine).hosts,
	decide: func(e *Engine, t *subject, now time.Time) lifecycle.Decision {
		busy := e.busySidecars
		if e.Config.SidecarTakesPlace(t.Record, e.sidecarsCounted) {
			busy--
		}
		seen, _ := t.m.seen.(*sidecar.Observation)
		return e.core.decideSidecar(&sidecar.State{Target: lifecycle.Target{State: t.State, Subject: t.Subject}, Seen: seen, Busy: busy, NewTask: e.NewTask()}, now)
	},
	look: (*pass).lookAtSidecar, saw: (*pass).sawSidecar,
	call: (*pass).approve,
	about: func(t *subject) *remediations.Object {
		pod := remediations.PodNamed(t.Name)
		o := &remediations.Object{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
		seen, _ := t.m.seen.(*sidecar.Observation)
		switch {
		case seen != nil && seen.Pod.UID != "":
			o.UID = seen.Pod.UID
		case t.Record != nil:
			o.UID = t.Record.Pod.UID
		}
		return o
	},
	// It waits for nothing, whatever its alert still says.
	quiet: func(t *subject) bool {
		seen, _ := t.m.seen.(*sidecar.Observation)
		return t.Record == nil && seen != nil && seen.Health == sidecar.HealthReady
	},
	counted: (*pass).countSidecar,
}

// approve lets the approval go out.
func (p *pass) approve(t *subject, d lifecycle.Decision) string {
	r := d.Record
	intent, key := *r.Intent, t.Key
	a := Approval{Provider: d.Policy.Plan[r.Step.Index].Provider, Pod: *r.Pod, Node: t.of.node, Task: intent.Task}
	p.send(calling{
		of: t.of, step: r.Step.Name, attempt: intent.ID,
		trail: trailOf(r),
		lets: func(_ context.Context, live *corev1.Node) error {
			return p.core.mayStillRepair(p.Config, live, key, intent.ID)
		},
		act: func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error) {
			return p.Sidecars.Approve(ctx, a, mayStill)
		},
	}, &t.m.repairMemory)
	return intent.ID
}

// countSidecar counts those that take a place, and names those that a person must look at.
func (p *pass) countSidecar(t *subject, r *remediations.Record, d lifecycle.Decision, wrote bool) {
	switch {
	case !wrote:
	case d.Verb == lifecycle.VerbIssue:
		p.busySidecars++
	case p.Config.SidecarTakesPlace(t.Record, p.sidecarsCounted) && (d.Record == nil || !d.Record.Phase.InFlight()):
		p.busySidecars--
	}
	policy := ""
	if r != nil {
		policy = r.Policy
	} else if d.Policy != nil {
		policy = d.Policy.Name
	}
	p.tally.showSidecar(t, policy)
	if r != nil && r.Phase == remediations.PhaseExhausted && len(p.tally.sidecars) < sidecarsNamed {
		p.tally.sidecars[t.Name] = t.of.node
	}
}

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
		for _, m := range e.roster.Concerned() {
			j := e.Config.Registry.ReadJournal(m.Node)
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
func (p *pass) lookAtSidecar(t *subject, d lifecycle.Decision) func(ctx context.Context, began time.Time) any {
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

// sawSidecar joins what was seen with what earlier looks at the same container showed.
func (p *pass) sawSidecar(t *subject) {
	g := t.m.seen.(*sidecar.Observation)
	g.Follow(p.gates[t.Name])
	if g.Health == sidecar.HealthReady || g.Health == sidecar.HealthNotReady {
		p.gates[t.Name] = g
	}
	p.transition(t)
}

// transition tells people that a sidecar has begun to wait, or is ready again. What lies between the two is no news.
func (p *pass) transition(t *subject) {
	g, m := t.m.seen.(*sidecar.Observation), t.m
	switch {
	case g.Node != t.of.node || g.Pod.UID == "":
		m.waits = false
	case g.Health == sidecar.HealthNotReady && !m.waits:
		m.waits = true
		p.regarding(g, Event{Warning: true, Reason: "SidecarReadinessLost", Action: "Sidecar", Note: fmt.Sprintf("the sidecar of %s is not ready: %s", t.Name, g.Detail)})
	case g.Health == sidecar.HealthReady && m.waits:
		m.waits = false
		p.regarding(g, Event{Reason: "SidecarReadinessRestored", Action: "Sidecar", Note: fmt.Sprintf("the sidecar of %s is ready", t.Name)})
	}
}

// regarding sends an Event about the pod, and about the object that it is a part of.
func (e *Engine) regarding(g *sidecar.Observation, event Event) {
	event.About = &remediations.Object{APIVersion: "v1", Kind: "Pod", Namespace: g.Pod.Namespace, Name: g.Pod.Name, UID: g.Pod.UID}
	e.Events.Event("", event)
	if g.Owner.Name != "" {
		owner := g.Owner
		event.About = &owner
		e.Events.Event("", event)
	}
}
