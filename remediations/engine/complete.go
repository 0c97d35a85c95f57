package engine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const completeEvery = 15 * time.Second

// complete switches a machine on again that a step has switched off. It needs only the record on
// the Node, so it continues after a crash, and for an exhausted repair: a machine must not stay off
// because its attempt was interrupted.
func (p *pass) complete(m *memory, s *lifecycle.State, d *lifecycle.Decision) {
	n, r := s.Node, s.Journal.Record
	if r == nil || r.Intent == nil || r.Phase == remediations.PhaseActing || m.completed == r.Intent.ID ||
		(r.Intent.Outcome != remediations.CallAccepted && r.Intent.Outcome != remediations.CallUnknown) || n.Status.NodeInfo.BootID != r.Intent.BootID {
		return
	}
	step, intent, ended := remediations.LastDone(r).Name, *r.Intent, !r.Phase.InFlight()
	provider := p.Config.ProviderOfIntent(step, r.Intent)
	completer, ok := p.Actuators[provider][step].(Completer)
	switch again := m.completedAt.Add(completeEvery); {
	case !ok || m.completing:
		return
	case p.now.Before(again):
		d.Recheck = remediations.Earlier(d.Recheck, again)
		return
	}
	m.completing = true
	machine, trail := MachineOf(n), trailOf(r)
	machine.Attempt, machine.Before = intent.ID, intent.Before
	mayStill := p.mayStillAt(n.Name, func(_ context.Context, live *corev1.Node) error {
		j := p.Config.Registry.ReadJournal(live)
		if j.Record == nil || j.Record.Intent == nil || j.Record.Intent.ID != intent.ID {
			return remediations.Withhold(remediations.ReasonCallWithheld, "the intent %s is no longer on record", intent.ID)
		}
		if err := p.stillServed(step, provider, n, live); err != nil {
			return err
		}
		return lifecycle.LetsAct(p.Config.HoldWhen, live, j, intent.At)
	})
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
		defer cancel()
		done, err := completer.Complete(ctx, machine, mayStill)
		p.enqueue(func() {
			m.completing, m.completedAt = false, p.Clock.Now()
			if err != nil {
				note := text.Line(err.Error(), 900)
				trail.Log(p.Log).Info("the second part of the step failed; Drydock tries it again", "node", n.Name, "step", step, "why", note)
				p.emitOnce(n.Name, intent.ID+note, Event{Warning: true, Reason: "RepairBlocked", Action: intent.ID, Note: step + " of repair " + r.ID + ": " + note, Of: trail})
			}
			if done && ended { // not completed before the repair has ended: until then, the attempt may still take effect late
				m.completed = intent.ID
			}
		})
	})
}
