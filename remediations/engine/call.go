package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
)

// lastLook bounds the read of the Node right before a call.
const lastLook = 2 * time.Second

type calling struct {
	of            target
	step, attempt string
	provider      string
	trail         Trail
	// notBefore leaves other repair systems time to react to Drydock's announcement on the Node
	// (see Record.Settled).
	notBefore time.Time
	// lets returns an error if the call is no longer allowed. live is the Node as the API server
	// has it right before the call.
	lets func(ctx context.Context, live *corev1.Node) error
	// act calls mayStill right before it changes something. An error of mayStill stops the call.
	// before and after may be nil.
	act    func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error)
	before func(ctx context.Context)
	after  func(ctx context.Context, call *lifecycle.Call)
}

func (p *pass) callProvider(s *lifecycle.State, d lifecycle.Decision) {
	n, intent, step := s.Node, *d.Record.Intent, d.Record.Step
	m := p.remember(n.Name)
	m.replacement, m.pods = nil, nil // answers about an earlier attempt do not apply to this one
	provider, _ := p.Config.ProviderOf(step.Name, n)
	actuator := p.Actuators[provider][step.Name]
	machine := MachineOf(n)
	askAgain, stillIll := p.lastWitness(n, d.Signs)
	machine.Attempt, machine.Before = intent.ID, intent.Before
	of := d.Policy.Plan[step.Index]
	machine.Soft, machine.Unit, machine.DaemonSet, machine.Template = of.Soft && step.Attempt == 1, of.Unit, of.DaemonSet, of.Template
	machine.GivesUpPods, machine.SwitchedOff = d.Policy.GivesUpPods(d.Record), s.Journal.SwitchedOff(n) != nil
	machine.Policy, machine.Alert, machine.Deadline = d.Policy.Name, alertOf(s, d.Record), intent.At.Add(of.Wait)
	p.send(calling{
		of: target{node: n.Name}, step: step.Name, provider: provider, attempt: intent.ID, trail: trailOf(d.Record),
		notBefore: d.Record.Settled(n, d.Announce, p.Clock.Now()),
		lets: func(ctx context.Context, live *corev1.Node) error {
			if err := p.stillServed(step.Name, provider, n, live); err != nil {
				return err
			}
			if err := stillIll(ctx, live, intent.ID); err != nil {
				return err
			}
			return p.reserve(ctx, machine, provider, step.Name)
		},
		before: askAgain,
		act: func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error) {
			return actuator.Act(ctx, machine, mayStill)
		},
		after: func(ctx context.Context, call *lifecycle.Call) {
			if p.Silencer != nil && call.Outcome == remediations.CallAccepted {
				call.Silence = p.silence(ctx, n.Name, d)
			}
		},
	}, &m.targetMemory)
}

// send makes the call only while this process is the leader and the intent is young.
func (p *pass) send(c calling, m *targetMemory) {
	if p.twice(c, m) {
		return
	}
	m.call = &lifecycle.Call{IntentID: c.attempt}
	p.underway++
	var look lookedLast
	mayStill := look.over(p.mayStill(c.of.node, c.lets))
	p.Beside(func() {
		p.rest(p.ctx, c.notBefore.Sub(p.Clock.Now()))
		c.trail.Log(p.Log).Info("making the call", "node", c.of.node, "step", c.step)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.CallTimeout)
		defer cancel()
		if c.before != nil {
			c.before(ctx)
		}
		outcome, err := p.act(ctx, c, &look, mayStill)
		call := lifecycle.Call{IntentID: c.attempt, Outcome: outcome, Withheld: look.withheld()}
		if call.Withheld == "" && look.givesBack(outcome, err) {
			call.Withheld = remediations.ReasonCallWithheld
			if errors.Is(err, ErrPassing) && !look.asked() {
				err = fmt.Errorf("%s could not read what it needs for the step %s: %w", cmp.Or(c.provider, "Drydock"), c.step, err)
			}
		}
		if err != nil {
			call.Why, call.Stop, call.Alone, call.Again = err.Error(), errors.Is(err, ErrAccount), look.alone(err), askedToWait(err)
		}
		if c.after != nil {
			c.after(ctx, &call)
		}
		p.calls <- called{of: c.of, call: call, step: c.step, provider: c.provider, trail: c.trail}
	})
}

// act repeats the call while the intent is young, if the provider could not read what it needs.
// Nothing was done yet, so a slow API server does not cost an attempt.
func (p *pass) act(ctx context.Context, c calling, look *lookedLast, mayStill func() error) (outcome remediations.CallOutcome, err error) {
	for {
		outcome, err = c.act(ctx, mayStill)
		if outcome != remediations.CallRefused || !errors.Is(err, ErrPassing) || errors.Is(err, ErrAccount) || look.asked() {
			return outcome, err
		}
		c.trail.Log(p.Log).Info("the provider did not make the call, because it could not read what it needs; trying again", "node", c.of.node, "step", c.step, "why", err.Error())
		again := p.Clock.NewTimer(ActAgain)
		select {
		case <-again.C():
		case <-p.ctx.Done():
		case <-ctx.Done():
		}
		again.Stop()
		if p.ctx.Err() != nil || ctx.Err() != nil || p.core.young(p.now, p.Clock.Now()) != nil {
			return outcome, err
		}
	}
}

// askedToWait returns zero if the error names no wait.
func askedToWait(err error) time.Duration {
	var of interface{ Wait() time.Duration }
	if !errors.As(err, &of) {
		return 0
	}
	return of.Wait()
}

// stillServed stops the call by an error if the Node's provider or providerID has changed since the
// decision. A second Node that shows the same machine stops it, too.
func (e *Engine) stillServed(step, asked string, then, live *corev1.Node) error {
	twin := e.roster.Twin(live)
	switch provider, against := e.Config.ProviderOf(step, live); {
	case against != "":
		return remediations.Withhold(remediations.ReasonProviderAbsent, "%s", against)
	case provider != asked:
		return remediations.Withhold(remediations.ReasonProviderAbsent, "%s now serves Node %s; the call was meant for %s", provider, live.Name, asked)
	case twin != "":
		return remediations.Withhold(remediations.ReasonProviderAbsent, "%s", node.SaysTwins(live, twin))
	case live.Spec.ProviderID != then.Spec.ProviderID:
		return remediations.Withhold(remediations.ReasonProviderAbsent, "the spec.providerID of Node %s is now %.200q; the call was meant for %.200q", live.Name, live.Spec.ProviderID, then.Spec.ProviderID)
	}
	return nil
}

// lookedLast has the results of mayStill. A provider may call mayStill more than once.
type lookedLast struct {
	let  atomic.Bool
	held atomic.Value // a remediations.Reason
	old  atomic.Bool
}

func (l *lookedLast) over(mayStill func() error) func() error {
	return func() error {
		err := mayStill()
		if err != nil {
			l.held.Store(remediations.WithheldFor(err, remediations.ReasonCallWithheld))
			l.old.Store(errors.Is(err, errOld))
		} else {
			l.let.Store(true)
		}
		return err
	}
}

func (l *lookedLast) asked() bool { return l.let.Load() || l.held.Load() != nil }

// withheld returns an empty reason if a check allowed the call, or if no check ran.
func (l *lookedLast) withheld() remediations.Reason {
	reason, _ := l.held.Load().(remediations.Reason)
	if l.let.Load() {
		return ""
	}
	return reason
}

// alone reports whether the call failed only because of this one machine. The provider's error must
// say so. A last check that stopped the call does not contradict it if the intent was too old: a
// slow machine can cause that.
func (l *lookedLast) alone(err error) bool {
	var of interface{ Survey() remediations.Survey }
	if !errors.As(err, &of) || of.Survey().Fleetwide || errors.Is(err, ErrAccount) {
		return false
	}
	return l.withheld() == "" || l.old.Load()
}

// givesBack reports whether certainly nothing was done, so that the attempt does not count.
func (l *lookedLast) givesBack(outcome remediations.CallOutcome, err error) bool {
	if outcome != remediations.CallRefused || errors.Is(err, ErrUnable) {
		return false
	}
	return !l.asked() || errors.Is(err, ErrPassing) || errors.Is(err, ErrLater) || errors.Is(err, ErrAccount)
}

// mayStill checks right before a call that this process is still the leader, the intent is young,
// and the Node, read again, allows the call.
func (p *pass) mayStill(node string, lets func(ctx context.Context, live *corev1.Node) error) func() error {
	since, look := p.now, p.mayStillAt(node, lets)
	return func() error {
		if err := look(); err != nil {
			return err
		}
		return p.core.young(since, p.Clock.Now()) // checked last, because the reads above may have taken time
	}
}

// mayStillAt is mayStill without the limit on the intent's age, for calls that may be repeated.
func (p *pass) mayStillAt(node string, lets func(ctx context.Context, live *corev1.Node) error) func() error {
	return func() error {
		if p.ctx.Err() != nil {
			return remediations.Withhold(remediations.ReasonCallWithheld, "this replica of Drydock is stopping, or no longer leads")
		}
		ctx, cancel := context.WithTimeout(p.ctx, lastLook)
		defer cancel()
		live, err := p.Fleet.Node(ctx, node)
		if err != nil {
			return remediations.Withhold(remediations.ReasonBlind, "reading Node %s right before the call: %w", node, err)
		}
		if err := lets(ctx, live); err != nil {
			return err
		}
		if why := p.lacksCharge(); why != "" {
			return remediations.Withhold(remediations.ReasonCallWithheld, "%s", why)
		}
		return nil
	}
}

var errOld = errors.New("the intent is older")

func (c core) young(since, now time.Time) error { return Young(since, now, c.intentGood) }

// Young returns an error if the intent is older than good. It also compares the wall clock, because
// the monotonic clock does not count the time during which the machine was suspended.
func Young(since, now time.Time, good time.Duration) error {
	if now.Sub(since) > good || now.Round(0).Sub(since.Round(0)) > good {
		return remediations.Withhold(remediations.ReasonCallWithheld, "%w than %s, so the call was not made", errOld, text.Duration(good))
	}
	return nil
}

// Late handles an answer that arrives after the call's timeout, when the outcome is already
// recorded as unknown.
func (e *Engine) Late(node, attempt string, outcome remediations.CallOutcome, err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	e.enqueue(func() {
		m := e.memory[node]
		if m == nil || (m.call != nil && m.call.IntentID != attempt) {
			return
		}
		trail := trailOf(m.journal.Record)
		if trail.Intent != attempt {
			trail = Trail{Intent: attempt}
		}
		trail.Log(e.Log).Info("the provider answered late", "node", node, "outcome", outcome, "why", why)
		m.call = &lifecycle.Call{IntentID: attempt, Outcome: outcome, Why: why}
	})
}

// MachineOf returns the machine that the Node describes, without an attempt.
func MachineOf(n *corev1.Node) Machine {
	return Machine{Node: n.Name, UID: string(n.UID), ProviderID: n.Spec.ProviderID, SystemUUID: n.Status.NodeInfo.SystemUUID, BootID: n.Status.NodeInfo.BootID}
}

// silence creates a silence for the alerts about a node under repair, until the step's proof is
// due. It does so only after the provider has accepted the call.
//
// If a crash loses the ID, Drydock takes the silence for a person's silence, which holds the
// repair. That delays nothing, because no further step is due before the silence ends. If the
// silence cannot be created, a person is paged without need.
func (p *pass) silence(ctx context.Context, node string, d lifecycle.Decision) string {
	r, policy := d.Record, d.Policy
	about := map[string]string{policy.Labels[0]: node}
	if p.Config.ClusterLabel != "" {
		about[p.Config.ClusterLabel] = p.Config.ClusterValue
	}
	until := r.Intent.At.Add(policy.Plan[r.Step.Index].Wait)
	id, err := p.Silencer.Silence(ctx, about, until, fmt.Sprintf("repair %s: %s", r.ID, d.Message))
	if err != nil {
		trailOf(r).Log(p.Log).Error(err, "the alerts about a node under repair could not be silenced", "node", node)
	}
	return id
}
