package backtest

import (
	"context"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// The simulated provider accepts each call. In a replay that assumes cures, a call also schedules
// the cure of the node.
type step struct {
	w    *world
	name string
}

// Act implements engine.Actuator.
func (s step) Act(_ context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	if w := s.w; w.curing && !w.config.Remediation(s.name).PowersOff {
		c := coming{at: w.now.Add(w.cures.of(s.name)), node: m.Node, uid: m.UID, replaces: w.config.Remediation(s.name).Replaces}
		at, _ := slices.BinarySearchFunc(w.coming, c.at.Add(1), func(c coming, at time.Time) int { return c.at.Compare(at) })
		w.coming = slices.Insert(w.coming, at, c)
	}
	return remediations.CallAccepted, nil
}

type asked struct{ step }

// Survey implements engine.Surveyor. It keeps the node's name for the later proof.
func (asked) Survey(_ context.Context, m engine.Machine) remediations.Survey {
	return remediations.Survey{Before: remediations.Before(m.Node)}
}

// missing returns "" if the success is proven.
func (s asked) missing() string {
	if s.w.curing {
		return "" // in this replay, a node is healthy only because the step cured it
	}
	return "a backtest does not know the result of the step"
}

type pods struct{ asked }

// Proven implements engine.PodProver.
func (s pods) Proven(context.Context, remediations.Before) (remediations.PodProof, error) {
	return remediations.PodProof{Missing: s.missing()}, nil
}

type machine struct{ asked }

// Replaced implements engine.Replacer.
func (s machine) Replaced(_ context.Context, of remediations.Before) (remediations.Replacement, error) {
	n := s.w.node[string(of)]
	if n == nil || n.machines == 0 {
		return remediations.Replacement{Missing: "a backtest does not know whether a new machine replaced this one"}, nil
	}
	return remediations.Replacement{MachineGone: true, Successors: []string{n.now.Spec.ProviderID}}, nil
}

type power struct{ asked }

// PoweredOff implements engine.PowerProver.
func (s power) PoweredOff(context.Context, remediations.Before) (missing string, err error) {
	return s.missing(), nil
}

type empties struct{ w *world }

// Work implements engine.Worker.
func (e empties) Work(_ context.Context, _ engine.Machine, mayStill func() error, _ func(note, blocked string)) error {
	if err := mayStill(); err != nil {
		return err
	}
	e.w.sleep(e.w.cures.of("drain"))
	return nil
}

func (w *world) actuators() map[string]map[string]engine.Actuator {
	of := func(name string) engine.Actuator {
		s := step{w, name}
		switch r := w.config.Remediation(name); {
		case r.Replaces:
			return machine{asked{s}}
		case r.PowersOff:
			return power{asked{s}}
		case r.AsksPods:
			return pods{asked{s}}
		}
		return s
	}
	out := map[string]map[string]engine.Actuator{"": {}}
	for _, name := range w.config.Registry.Names() {
		out[""][name] = of(name)
	}
	for _, p := range w.config.Providers {
		out[p.Name] = map[string]engine.Actuator{}
		for _, name := range p.Steps {
			out[p.Name][name] = of(name)
		}
	}
	return out
}

// The recorded data have no pods, so a pod counts as unhealthy while an alert fires on its node.
type podSign struct{ w *world }

// Testify implements engine.Witness.
func (s podSign) Testify(_ context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	if n := s.w.node[m.Node]; n != nil && len(n.firing) > 0 && n.cured == nil {
		return signs.Testimony{Answer: signs.Ill, Saw: "an alert fires; pods are not in the record"}
	}
	return signs.Testimony{Answer: signs.Well, Saw: "no alert fires; pods are not in the record"}
}
