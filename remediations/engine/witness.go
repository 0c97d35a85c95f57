package engine

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// Witness answers what the watched Node does not show of a policy's witness. Leases are read through Fleet.
type Witness interface {
	// Testify changes nothing. Who cannot say gives Unknown and why.
	Testify(ctx context.Context, m Machine, s signs.Sign) signs.Testimony
}

// witnessesAtOnce bounds the nodes whose signs are being read: a thousand alerts must not become a thousand requests at once.
const witnessesAtOnce = 8

// readWitness reads beside the loop what the policy's witness needs and the watched Node does not show. Where too many are
// being read already, the pass that follows the end of one asks again.
func (p *pass) readWitness(m *memory, n *corev1.Node, signs []signs.Sign) {
	if m.testifying || p.testimonies >= witnessesAtOnce {
		return
	}
	m.testifying = true
	p.testimonies++
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
		defer cancel()
		read := p.testify(ctx, n, signs)
		p.enqueue(func() {
			m.testifying = false
			p.testimonies--
			m.read = merged(m.read, read)
		})
	})
}

// merged leaves both maps as they are: a State may still hold one of them.
func merged(old, read map[signs.Sign]signs.Testimony) map[signs.Sign]signs.Testimony {
	out := maps.Clone(old)
	if out == nil {
		return read
	}
	maps.Copy(out, read)
	return out
}

// testify reads the signs that the watched Node does not show.
func (e *Engine) testify(ctx context.Context, n *corev1.Node, asked []signs.Sign) map[signs.Sign]signs.Testimony {
	read := map[signs.Sign]signs.Testimony{}
	for _, s := range signs.ToRead(asked, n) {
		var t signs.Testimony
		switch w := e.witness(s.Kind, n); {
		case s.Kind == signs.StaleLease:
			t = e.leaseSays(ctx, n.Name)
		case w == nil:
			t = signs.Testimony{Answer: signs.Unknown, Saw: fmt.Sprintf("no provider that can answer about %s is configured", s)}
		default:
			t = w.Testify(ctx, machineOf(n), s)
		}
		t.At = e.Clock.Now() // of the answer: one that took its time is no worse for that
		read[s] = t
	}
	return read
}

// witness is who can say of such a sign of the Node; nil: nobody can. Of the machine itself it is the Node's provider.
func (e *Engine) witness(kind signs.Kind, n *corev1.Node) Witness {
	if kind != signs.NotRunning {
		return e.Witnesses[kind]
	}
	for _, step := range e.Config.Registry.Names() {
		provider, _ := e.Config.ProviderOf(step, n)
		if w, ok := e.Actuators[provider][step].(Witness); ok {
			return w
		}
	}
	return e.Witnesses[kind]
}

func (e *Engine) leaseSays(ctx context.Context, node string) signs.Testimony {
	renewed, duration, err := e.Fleet.Lease(ctx, node)
	if err != nil {
		return signs.Testimony{Answer: signs.Unknown, Saw: "the lease of the node could not be read: " + err.Error()}
	}
	return signs.LeaseSays(e.leases.follow(node, signs.Lease{ReadAt: e.Clock.Now(), RenewedAt: renewed, Duration: duration}))
}

// lastWitness gives the last look what it asks of the signs. What the API server knows is read while the call waits for that
// look. A provider is asked before its call begins, since it takes one call at a time.
func (e *Engine) lastWitness(n *corev1.Node, asked []signs.Sign) (before func(ctx context.Context), still func(ctx context.Context, live *corev1.Node, intent string) error) {
	var slow, quick []signs.Sign
	for _, s := range asked {
		if s.Kind == signs.NotRunning {
			slow = append(slow, s)
		} else {
			quick = append(quick, s)
		}
	}
	var said map[signs.Sign]signs.Testimony
	before = func(ctx context.Context) {
		if len(slow) > 0 {
			said = e.testify(ctx, n, slow)
		}
	}
	still = func(ctx context.Context, live *corev1.Node, intent string) error {
		read := merged(said, e.testify(ctx, live, quick)) // what must be read depends on what the Node says now
		return e.core.mayStillAct(e.Config, live, intent, asked, read)
	}
	return before, still
}

// witnessOf are the signs of the Node that a decision asks to be read.
func witnessOf(d lifecycle.Decision, n *corev1.Node) []signs.Sign {
	if d.Policy == nil || d.Policy.Witness == nil || d.Policy.Witness.None || n == nil {
		return nil
	}
	return signs.ToRead(d.Policy.Witness.Whole(), n)
}
