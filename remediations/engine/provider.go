package engine

import (
	"cmp"
	"context"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// survey asks in another goroutine, and returns false. It returns true if there is nothing to ask:
// a provider without the method Survey never objects.
func (p *pass) survey(s *lifecycle.State, d lifecycle.Decision) bool {
	m, n := p.remember(s.Node.Name), s.Node
	step := d.AskStep
	provider, _ := p.Config.ProviderOf(step.Name, n)
	surveyor, asks := p.Actuators[provider][step.Name].(Surveyor)
	if !asks && !p.reserves(step.Name) {
		m.survey = &remediations.Survey{Step: step, Provider: provider, At: p.now}
		return true
	}
	if m.asking {
		return false
	}
	m.asking = true
	p.surveys++
	machine := MachineOf(n)
	machine.Unit, machine.DaemonSet, machine.Template = step.Unit, step.DaemonSet, step.Template
	machine.SwitchedOff = s.Journal.SwitchedOff(n) != nil
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
		defer cancel()
		answer := p.reserved(ctx, machine, provider, step.Name)
		if answer.Trouble == "" && asks {
			answer = surveyor.Survey(ctx, machine)
		}
		answer.Step, answer.Provider = step, provider
		p.enqueue(func() {
			answer.At = p.Clock.Now() // the time of the answer and not of the question, because a slow answer is as valid as a quick one
			p.silent.note(&answer)
			known := m.survey != nil && m.survey.Step == answer.Step && m.survey.Trouble == answer.Trouble
			p.surveys--
			m.asking, m.survey = false, &answer
			if answer.Trouble != "" && !known {
				trailOf(s.Journal.Record).Log(p.Log).Info("the provider would refuse the step", "provider", provider, "node", machine.Node, "step", step.String(), "why", answer.Trouble)
			}
		})
	})
	return false
}

type silentProviders map[string]providerSilence

type providerSilence struct{ since, asked time.Time }

// silentFor is how long after the last question a silent provider still counts as silent.
const silentFor = 2 * remediations.AskMended

// note sets OutSince in the answer if the provider cannot be reached for any machine.
func (s silentProviders) note(answer *remediations.Survey) {
	of := cmp.Or(answer.Provider, answer.Step.Name)
	if answer.Reason != "" {
		return // the provider was not asked
	}
	if !answer.Unreached || !answer.Fleetwide {
		delete(s, of)
		return
	}
	was, known := s[of]
	if !known || answer.At.Sub(was.asked) > silentFor {
		was.since = answer.At
	}
	s[of] = providerSilence{was.since, answer.At}
	answer.OutSince = was.since
}

// askProof asks the provider whether the step had its effect, for example whether the machine was
// replaced.
func (p *pass) askProof(m *memory, r *remediations.Record) {
	if m.asking || r.Intent.Before == "" {
		return
	}
	about, before := remediations.Asked{Intent: r.Intent.ID, At: p.now}, r.Intent.Before
	provider := p.Config.ProviderOfIntent(r.Step.Name, r.Intent)
	switch prover := p.Actuators[provider][r.Step.Name].(type) {
	case Replacer:
		p.askMachine(m, about, func(ctx context.Context) (remediations.Replacement, error) { return prover.Replaced(ctx, before) })
	case PowerProver:
		p.askMachine(m, about, func(ctx context.Context) (remediations.Replacement, error) {
			missing, err := prover.PoweredOff(ctx, before)
			return remediations.Replacement{MachineGone: missing == "", Missing: missing}, err
		})
	case PodProver:
		m.asking = true
		p.Beside(func() {
			ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
			defer cancel()
			answer, err := prover.Proven(ctx, before)
			if err != nil {
				answer = remediations.PodProof{Missing: err.Error()}
			}
			answer.Asked = about
			p.enqueue(func() { m.asking, m.pods = false, &answer })
		})
	}
}

func (p *pass) askMachine(m *memory, about remediations.Asked, ask func(ctx context.Context) (remediations.Replacement, error)) {
	m.asking = true
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
		defer cancel()
		answer, err := ask(ctx)
		if err != nil {
			answer = remediations.Replacement{Missing: err.Error()}
		}
		answer.Asked = about
		p.enqueue(func() {
			if was := m.replacement; err != nil && was != nil && was.Intent == about.Intent {
				answer.Blocked = was.Blocked // a question that failed does not show that the blockage has ended
			}
			m.asking, m.replacement = false, &answer
		})
	})
}

func (p *pass) provider(s *lifecycle.State, d lifecycle.Decision) string {
	index := 0
	for _, r := range []*remediations.Record{d.Record, s.Journal.Record} {
		if r != nil {
			index = r.Step.Index
			break
		}
	}
	return p.Config.ProviderAhead(d.Policy, index, s.Node)
}
