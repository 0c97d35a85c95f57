package engine

import (
	"cmp"
	"context"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// survey asks the provider about the machine before a step. It says whether the answer is there at once: who cannot be
// asked has nothing against it.
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
	machine := machineOf(n)
	machine.Unit, machine.DaemonSet, machine.Template = step.Unit, step.DaemonSet, step.Template
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
		defer cancel()
		answer := p.reserved(ctx, machine, provider, step.Name)
		if answer.Trouble == "" && asks {
			answer = surveyor.Survey(ctx, machine)
		}
		answer.Step, answer.Provider = step, provider
		p.enqueue(func() {
			answer.At = p.Clock.Now() // of the answer: one that took its time is no worse for that
			p.silent.heard(&answer)
			known := m.survey != nil && m.survey.Step == answer.Step && m.survey.Trouble == answer.Trouble
			p.surveys--
			m.asking, m.survey = false, &answer
			if answer.Trouble != "" && !known {
				trailOf(s.Journal.Record).Log(p.Log).Info("the step would be refused", "provider", provider, "node", machine.Node, "step", step.String(), "why", answer.Trouble)
			}
		})
	})
	return false
}

// silentProviders are those that give no usable answer about any machine, by name, or by step where one alone carries it out.
type silentProviders map[string]providerSilence

// providerSilence is since when that is so, and when the provider was last asked.
type providerSilence struct{ since, asked time.Time }

// silentFor is how long a provider may not have been asked, and still count as silent.
const silentFor = 2 * remediations.AskMended

// heard notes what the provider answered, and gives an answer that is none the time since when there has been none.
func (s silentProviders) heard(answer *remediations.Survey) {
	of := cmp.Or(answer.Provider, answer.Step.Name)
	if answer.Reason != "" {
		return // it was not asked
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

// askProof asks the provider of the intent whether the proof is there.
func (p *pass) askProof(m *memory, r *remediations.Record) {
	if m.asking || r.Intent.Before == "" {
		return
	}
	about, before := remediations.Asked{Intent: r.Intent.ID, At: p.now}, r.Intent.Before
	provider := p.Config.ProviderOfIntent(r.Step.Name, r.Intent)
	switch prover := p.Actuators[provider][r.Step.Name].(type) {
	case Replacer:
		m.asking = true
		p.Beside(func() {
			ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
			defer cancel()
			answer, err := prover.Replaced(ctx, before)
			if err != nil {
				answer = remediations.Replacement{Missing: err.Error()}
			}
			answer.Asked = about
			p.enqueue(func() {
				if was := m.replacement; err != nil && was != nil && was.Intent == about.Intent {
					answer.Blocked = was.Blocked // who could not be asked has not said that it is over
				}
				m.asking, m.replacement = false, &answer
			})
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
