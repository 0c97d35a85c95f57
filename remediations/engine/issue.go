package engine

import (
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

// lastLook bounds the read of the Node right before the call.
const lastLook = 2 * time.Second

// begin starts the call.
func (p *pass) begin(s *lifecycle.State, d lifecycle.Decision) {
	n, intent, step := s.Node, *d.Record.Intent, d.Record.Step
	m := p.remember(n.Name)
	m.replacement, m.pods = nil, nil // results about an earlier attempt do not apply to this one
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
		settled: d.Record.Settled(n, d.Announce, p.Clock.Now()),
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

// stillServed withholds the call if, since the decision, another provider serves the Node, or its
// machine has changed. It also withholds the call if two Nodes show the same machine.
func (e *Engine) stillServed(step, asked string, then, live *corev1.Node) error {
	twin := e.roster.Twin(live)
	switch provider, against := e.Config.ProviderOf(step, live); {
	case against != "":
		return remediations.Withhold(remediations.ReasonProviderAbsent, "%s", against)
	case provider != asked:
		return remediations.Withhold(remediations.ReasonProviderAbsent, "%s now serves Node %s, and %s was asked", provider, live.Name, asked)
	case twin != "":
		return remediations.Withhold(remediations.ReasonProviderAbsent, "%s", node.SaysTwins(live, twin))
	case live.Spec.ProviderID != then.Spec.ProviderID:
		return remediations.Withhold(remediations.ReasonProviderAbsent, "the spec.providerID of Node %s is now %.200q, and %.200q was asked about", live.Name, live.Spec.ProviderID, then.Spec.ProviderID)
	}
	return nil
}

// lookedLast remembers the results of the last checks before a call. An actuator may check more
// than once.
type lookedLast struct {
	let  atomic.Bool
	held atomic.Value // a remediations.Reason
	// old: the last check withheld the call because its intent was too old.
	old atomic.Bool
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

// asked reports whether the actuator checked, and so came as far as its call.
func (l *lookedLast) asked() bool { return l.let.Load() || l.held.Load() != nil }

// withheld returns why every check of the actuator withheld the call, so that no call was made.
// Empty: a check allowed the call, or the actuator did not check.
func (l *lookedLast) withheld() remediations.Reason {
	reason, _ := l.held.Load().(remediations.Reason)
	if l.let.Load() {
		return ""
	}
	return reason
}

// alone reports whether the call failed because of its machine alone. Its provider must report so.
// Drydock must not have withheld the call itself, except for the intent's age: a slow machine may
// have caused that.
func (l *lookedLast) alone(err error) bool {
	var of interface{ Survey() remediations.Survey }
	if !errors.As(err, &of) || of.Survey().Fleetwide || errors.Is(err, ErrAccount) {
		return false
	}
	return l.withheld() == "" || l.old.Load()
}

// givesBack reports whether certainly nothing was done, so that the attempt is not spent. Either no
// call was made, or the provider refused it and may accept it later.
func (l *lookedLast) givesBack(outcome remediations.CallOutcome, err error) bool {
	if outcome != remediations.CallRefused || errors.Is(err, ErrUnable) {
		return false
	}
	return !l.asked() || errors.Is(err, ErrPassing) || errors.Is(err, ErrLater) || errors.Is(err, ErrAccount)
}

// mayStill returns the last check before a call: this process still leads, the intent of this pass
// is young, and the Node as it is now allows the call.
func (p *pass) mayStill(node string, lets func(ctx context.Context, live *corev1.Node) error) func() error {
	since, look := p.now, p.mayStillAt(node, lets)
	return func() error {
		if err := look(); err != nil {
			return err
		}
		return p.core.young(since, p.Clock.Now()) // checked last, because the reads above may have taken time
	}
}

// mayStillAt is mayStill for a call that may be repeated, so that its intent may be of any age.
func (p *pass) mayStillAt(node string, lets func(ctx context.Context, live *corev1.Node) error) func() error {
	return func() error {
		if p.ctx.Err() != nil {
			return remediations.Withhold(remediations.ReasonCallWithheld, "this Drydock is stopping, or no longer leads")
		}
		ctx, cancel := context.WithTimeout(p.ctx, lastLook)
		defer cancel()
		live, err := p.Fleet.Node(ctx, node)
		if err != nil {
			return remediations.Withhold(remediations.ReasonBlind, "looking at node %s once more: %w", node, err)
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

// errOld begins the message about an intent that became too old before its call was made.
var errOld = errors.New("the intent is older")

func (c core) young(since, now time.Time) error { return Young(since, now, c.intentGood) }

// Young withholds a call whose intent is older than good. It compares both clocks, because the
// monotonic clock does not count the time that a suspended machine slept.
func Young(since, now time.Time, good time.Duration) error {
	if now.Sub(since) > good || now.Round(0).Sub(since.Round(0)) > good {
		return remediations.Withhold(remediations.ReasonCallWithheld, "%w than %s, so the call was not made", errOld, text.Duration(good))
	}
	return nil
}

// Late takes in an answer that arrived after the call's timeout, when the attempt already counted
// as possibly done.
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

// MachineOf returns the machine as its Node describes it, without an attempt.
func MachineOf(n *corev1.Node) Machine {
	return Machine{Node: n.Name, UID: string(n.UID), ProviderID: n.Spec.ProviderID, SystemUUID: n.Status.NodeInfo.SystemUUID, BootID: n.Status.NodeInfo.BootID}
}

// silence silences the alerts about a node under repair for as long as the step's proof may take.
// The silence is created only after the call is accepted. If a crash loses its ID, the silence
// looks like a person's and holds the repair. But no further step is due before the silence ends.
// If the request fails, the only cost is a page to a person.
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

func (p *pass) causeOf(s *lifecycle.State, r *remediations.Record) string {
	if a := alertOf(s, r); a != nil {
		return "alert " + a.Name + " firing since " + a.StartsAt.Format(time.RFC3339)
	}
	return r.Cause.String()
}

// alertOf returns the alert that began the repair. Nil: a person requested the repair, or the alert
// is no longer on the Node.
func alertOf(s *lifecycle.State, r *remediations.Record) *remediations.Alert {
	for _, a := range s.Journal.Alerts {
		if a.Fingerprint == r.Cause.Alert {
			return &a
		}
	}
	return nil
}
