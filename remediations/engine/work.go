package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

type working struct {
	intent string
	run    int
	cancel context.CancelFunc
}

func (m *memory) stopWork() {
	if m.work != nil {
		m.work.cancel()
		m.work, m.call = nil, nil
	}
}

// keepWorking stops the running step unless both the record and the decision continue it.
func (m *memory) keepWorking(s *lifecycle.State, d lifecycle.Decision) {
	if m.work == nil {
		return
	}
	r := s.Journal.Record
	if r == nil || r.Intent == nil || r.Intent.ID != m.work.intent || r.Phase != remediations.PhaseActing || (d.Verb != lifecycle.VerbWait && d.Verb != lifecycle.VerbLook) {
		m.stopWork()
	}
}

// work runs until the step's deadline or until a decision stops it.
func (p *pass) work(n *corev1.Node, d lifecycle.Decision, r *remediations.Record) {
	m, worker := p.remember(n.Name), p.Workers[r.Step.Name]
	if worker == nil || m.work != nil {
		return
	}
	intent := r.Intent.ID
	ctx, cancel := context.WithTimeout(p.ctx, r.Deadline.Sub(p.Clock.Now()))
	p.runs++
	m.work = &working{intent: intent, run: p.runs, cancel: cancel}
	p.working[n.Name] = true
	m.call = &lifecycle.Call{IntentID: intent}
	trail := trailOf(r)
	trail.Log(p.Log).Info("beginning the step", "node", n.Name, "step", r.Step.Name)
	askAgain, stillIll := p.lastWitness(n, d.Signs)
	machine, run, node, step := MachineOf(n), p.runs, n.Name, r.Step.Name
	machine.Attempt = intent
	if of, ok := d.Policy.StepAt(r.Step); ok {
		machine.WithoutController = of.WithoutController
	}
	var held atomic.Bool
	mayStill := func() error {
		look, cancel := context.WithTimeout(ctx, lastLook)
		defer cancel()
		live, err := p.Fleet.Node(look, n.Name)
		if err == nil {
			err = stillIll(look, live, intent)
		}
		if err == nil {
			err = p.reserve(look, machine, "", step)
		}
		held.Store(err != nil)
		return err
	}
	p.Beside(func() {
		defer cancel()
		askAgain(ctx)
		err := worker.Work(ctx, machine, mayStill, func(note, blocked string) {
			p.enqueue(func() {
				if m.work != nil && m.work.run == run {
					m.call.Note, m.call.Blocked = note, blocked
				}
			})
		})
		// ctx must be checked here, because the deferred cancel ends it when this function returns.
		stopped := errors.Is(ctx.Err(), context.Canceled)
		if held.Load() {
			p.rest(ctx, later) // mayStill held the work before it began: wait until the cache is up to date, then the next decision tries again
		}
		p.enqueue(func() { p.worked(m, run, node, step, trail, err, held.Load() || (err != nil && stopped)) })
	})
}

func (e *Engine) rest(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	timer := e.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// worked ignores a step that the engine itself has stopped. brokenOff means that the last check
// held the step before it began, or that this process is stopping: the next decision continues or
// holds it.
func (p *pass) worked(m *memory, run int, node, step string, trail Trail, err error, brokenOff bool) {
	if m.work == nil || m.work.run != run {
		return
	}
	m.work = nil
	if brokenOff {
		m.call = nil
		return
	}
	m.call.Outcome = remediations.CallAccepted
	if err != nil {
		m.call.Outcome, m.call.Why = remediations.CallRefused, err.Error()
	}
	p.metrics.Called(step, m.call.Outcome)
	trail.Log(p.Log).Info("a step ended", "node", node, "step", step, "outcome", m.call.Outcome, "why", m.call.Why)
}

// enqueue lets the loop run f and then make a pass. If the loop has ended, f is dropped.
func (e *Engine) enqueue(f func()) {
	select {
	case e.enqueued <- f:
	case <-e.over:
	}
}
