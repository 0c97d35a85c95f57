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

// Approval names the sidecar to approve.
type Approval struct {
	Provider string
	// Pod has the UID from the decision, and Node hosts that pod. Task is the ID of the sidecar's
	// task.
	Pod  remediations.Pod
	Node string
	Task string
}

// Sidecars observes the gated sidecars of pods, and approves them.
type Sidecars interface {
	// Hosts returns the node that hosts the pod. Empty: no node hosts it, or the pod does not
	// exist.
	Hosts(ctx context.Context, p remediations.Pod) (node string, err error)
	// Look reads the pod, its owner, and the health that the sidecar reports. It does not fail: the
	// observation says what could not be read. It changes nothing.
	Look(ctx context.Context, provider string, p remediations.Pod) sidecar.Observation
	// Approve observes the sidecar again, calls mayStill at the last moment, and approves. The
	// outcome is never empty. The error is why the approval was not accepted.
	Approve(ctx context.Context, a Approval, mayStill func() error) (remediations.CallOutcome, error)
}

// sidecarsNamed bounds the exhausted sidecars that the ledger names.
const sidecarsNamed = 20

// sidecars are the sidecars of the node's pods.
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
	// A ready sidecar waits for nothing, even if its alert still fires.
	quiet: func(t *subject) bool {
		seen, _ := t.m.seen.(*sidecar.Observation)
		return t.Record == nil && seen != nil && seen.Health == sidecar.HealthReady
	},
	counted: (*pass).countSidecar,
}

// approve sends the approval.
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

// countSidecar counts the sidecars that take a place, and names those that a person must check.
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

// hostsAsked bounds the pods that one poll looks up. The next poll continues.
const hostsAsked = 32

// hosts returns a function that finds the Node for a pod's alert: the Node that has the alert, else
// the node that hosts the pod according to the API server. Empty: there is none, or it is unknown
// now.
func (e *Engine) hosts(ctx context.Context) func(fingerprint, pod string) string {
	if e.Sidecars == nil {
		return func(string, string) string { return "" }
	}
	carriers := sync.OnceValue(func() map[string]string { // most polls meet no alert about a pod
		out := map[string]string{}
		for _, m := range e.roster.Concerned() {
			j := e.Config.Registry.ReadJournal(m.Node)
			if j.Malformed != nil {
				continue // nothing is decided on this node until a person acts, so a move of the pod would go unnoticed
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
			e.Log.Error(err, "which node hosts a pod cannot be read; its alert waits for the next poll", "pod", pod)
			asked = hostsAsked // if the API server does not answer, do not ask it for every pod
		}
		return node
	}
}

// lookAtSidecar observes the sidecar through the policy's provider.
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

// sawSidecar combines the observation with earlier observations of the same container.
func (p *pass) sawSidecar(t *subject) {
	g := t.m.seen.(*sidecar.Observation)
	g.Follow(p.gates[t.Name])
	if g.Health == sidecar.HealthReady || g.Health == sidecar.HealthNotReady {
		p.gates[t.Name] = g
	}
	p.transition(t)
}

// transition sends an Event when a sidecar begins to wait, and when it is ready again. States in
// between need no Event.
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

// regarding sends an Event about the pod, and about the object that owns the pod.
func (e *Engine) regarding(g *sidecar.Observation, event Event) {
	event.About = &remediations.Object{APIVersion: "v1", Kind: "Pod", Namespace: g.Pod.Namespace, Name: g.Pod.Name, UID: g.Pod.UID}
	e.Events.Event("", event)
	if g.Owner.Name != "" {
		owner := g.Owner
		event.About = &owner
		e.Events.Event("", event)
	}
}
