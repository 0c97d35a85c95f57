package engine

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// Witness reads the signs of a fault that the Node does not show. The engine itself reads leases,
// through Fleet.
type Witness interface {
	// Testify reads the sign and changes nothing. If the sign cannot be read, it returns Unknown
	// and the reason.
	Testify(ctx context.Context, m Machine, s signs.Sign) signs.Testimony
}

// witnessesAtOnce bounds the nodes whose signs are read at the same time: a thousand alerts would
// otherwise cause a thousand requests together.
const witnessesAtOnce = 8

// readWitness does nothing if the signs of too many nodes are being read. A later pass then tries
// again.
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

// merged changes neither map, because a lifecycle.State may still use it.
func merged(old, read map[signs.Sign]signs.Testimony) map[signs.Sign]signs.Testimony {
	out := maps.Clone(old)
	if out == nil {
		return read
	}
	maps.Copy(out, read)
	return out
}

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
			t = w.Testify(ctx, MachineOf(n), s)
		}
		t.At = e.Clock.Now() // the time of the answer and not of the question, because a slow answer is as valid as a quick one
		read[s] = t
	}
	return read
}

// witness returns nil if there is none. For the sign that the machine is not running, the Node's
// own provider comes first.
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

// lastWitness reads the signs once more before a call. before reads those that only the provider
// knows, because the provider cannot answer while it makes the call. still reads the others right
// before the call.
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
		read := merged(said, e.testify(ctx, live, quick)) // only the Node as it is now shows which signs must be read
		return e.core.mayStillAct(e.Config, live, intent, asked, read)
	}
	return before, still
}

func witnessOf(d lifecycle.Decision, n *corev1.Node) []signs.Sign {
	if d.Policy == nil || d.Policy.Witness == nil || d.Policy.Witness.None || n == nil {
		return nil
	}
	return signs.ToRead(d.Policy.Witness.Whole(), n)
}
