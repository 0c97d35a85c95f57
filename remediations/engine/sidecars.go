package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// Approval names the sidecar that a step approves. The sidecar keeps its pod waiting until then.
type Approval struct {
	Provider string
	// Pod has the UID from when the step was decided. Task is the ID that the approval sends to the
	// sidecar.
	Pod  remediations.Pod
	Node string
	Task string
}

// Sidecars observes and approves the sidecars that keep their pods waiting.
type Sidecars interface {
	// Hosts returns the node that runs the pod, or an empty name if there is none.
	Hosts(ctx context.Context, p remediations.Pod) (node string, err error)
	// Look reads the pod, its owner, and the health that the sidecar reports. It does not fail: the
	// observation names what could not be read.
	Look(ctx context.Context, provider string, p remediations.Pod) sidecar.Observation
	// Approve observes the sidecar again, calls mayStill at the last moment, and then approves it.
	// The outcome is never empty. The error is why the approval was not accepted.
	Approve(ctx context.Context, a Approval, mayStill func() error) (remediations.CallOutcome, error)
}

// sidecarsNamed bounds how many sidecars without attempts left the ledger names.
const sidecarsNamed = 20

var sidecars = kind{
	of: remediations.KindSidecar, sinceSeen: true,
	carrier: (*Engine).hosts,
	decide: func(e *Engine, t *subject, now time.Time) lifecycle.Decision {
		busy := e.busySidecars
		if e.Config.SidecarTakesPlace(t.Record, e.sidecarsCounted) {
			busy--
		}
		seen, _ := t.m.seen.(*sidecar.Observation)
		return e.core.decideSidecar(&sidecar.State{State: t.State, Subject: t.Subject, Seen: seen, Busy: busy, NewTask: e.NewTask()}, now)
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
	// If the sidecar is ready and has no repair, its hold needs no Event, although its alert still
	// fires.
	quiet: func(t *subject) bool {
		seen, _ := t.m.seen.(*sidecar.Observation)
		return t.Record == nil && seen != nil && seen.Health == sidecar.HealthReady
	},
	counted: (*pass).countSidecar,
}

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
	}, t.m)
	return intent.ID
}

// countSidecar also collects the sidecars that ran out of attempts: a person must check them.
func (p *pass) countSidecar(t *subject, r *remediations.Record, d lifecycle.Decision, wrote bool) {
	p.tallied(r, d)
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

// hostsAsked bounds the pods that one poll looks up in the API server. The next poll looks up
// others.
const hostsAsked = 32

// hosts prefers the Node that already shows the alert to the Node that runs the pod. The result is
// empty if neither is known.
func (e *Engine) hosts(ctx context.Context) func(fingerprint, pod string) string {
	if e.Sidecars == nil {
		return func(string, string) string { return "" }
	}
	carriers := sync.OnceValue(func() map[string]string { // computed only if the poll has an alert about a pod, because most polls have none
		out := map[string]string{}
		for _, m := range e.roster.Concerned() {
			j := e.Config.Registry.ReadJournal(m.Node)
			if j.Malformed != nil {
				continue // a person must act on this Node first; until then, its alerts are decided on no other Node
			}
			for _, a := range j.Alerts {
				out[a.Fingerprint] = m.Node.Name
			}
		}
		return out
	})
	hosts, asked := intake.OfPods(e.Sidecars.Hosts), 0
	return func(fingerprint, pod string) string {
		if node, ok := carriers()[fingerprint]; ok {
			return node
		}
		if asked++; asked > hostsAsked {
			return ""
		}
		ctx, cancel := context.WithTimeout(ctx, lastLook)
		defer cancel()
		node, err := hosts(ctx, remediations.AlertPrefix+fingerprint, pod)
		if err != nil {
			e.Log.Error(err, "the node of a pod cannot be read; the pod's alert waits for the next poll", "pod", pod)
			asked = hostsAsked // the API server does not answer, so do not ask it for further pods
		}
		return node
	}
}

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

func (p *pass) sawSidecar(t *subject) {
	g := t.m.seen.(*sidecar.Observation)
	g.Follow(p.gates[t.Name])
	if g.Health == sidecar.HealthReady || g.Health == sidecar.HealthNotReady {
		p.gates[t.Name] = g
	}
	p.transition(t)
}

func (p *pass) transition(t *subject) {
	g, m := t.m.seen.(*sidecar.Observation), t.m
	switch {
	case g.Node != t.of.node || g.Pod.UID == "":
		m.waits = false
	case g.Health == sidecar.HealthNotReady && !m.waits:
		m.waits = true
		p.regarding(g, Event{Warning: true, Reason: "SidecarReadinessLost", Action: "Sidecar", Note: fmt.Sprintf("the sidecar of pod %s is not ready: %s", t.Name, g.Detail)})
	case g.Health == sidecar.HealthReady && m.waits:
		m.waits = false
		p.regarding(g, Event{Reason: "SidecarReadinessRestored", Action: "Sidecar", Note: fmt.Sprintf("the sidecar of pod %s is ready", t.Name)})
	}
}

func (e *Engine) regarding(g *sidecar.Observation, event Event) {
	event.About = &remediations.Object{APIVersion: "v1", Kind: "Pod", Namespace: g.Pod.Namespace, Name: g.Pod.Name, UID: g.Pod.UID}
	e.Events.Event("", event)
	if g.Owner.Name != "" {
		owner := g.Owner
		event.About = &owner
		e.Events.Event("", event)
	}
}
