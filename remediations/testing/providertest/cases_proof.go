package providertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// proof is a step whose success only the provider can prove.
type proof struct {
	name string
	// Carries out the step at a backend that accepts it, and then calls what.
	accepted func(t testing.TB, p Provider, what func(s *scene, before remediations.Before, ask asking))
}

// kept has the facts that Survey returned and the record kept.
type asking func(kept remediations.Before) error

// In these cases nothing is proven: the query for the proof gets no good answer, or the facts on
// record do not name the machine.
func (c proof) cases() (all []aCase) {
	for i, f := range faults() {
		if f.silent() {
			continue
		}
		all = append(all, aCase{c.name + ": " + f.String(), func(t testing.TB, p Provider) {
			c.accepted(t, p, func(s *scene, before remediations.Before, ask asking) {
				s.Wire.Misbehave(0, -1, s.tattle(f, i))
				err := ask(before)
				s.texts = append(s.texts, err)
				require.Error(t, err, "no answer proves nothing")
				require.Len(t, s.changes(), 1)
			})
		}})
	}
	for name, kept := range map[string]remediations.Before{"nothing on record": "", "the record of another provider": `{"stranger":"i-1"}`} {
		all = append(all, aCase{c.name + ": " + name, func(t testing.TB, p Provider) {
			c.accepted(t, p, func(s *scene, _ remediations.Before, ask asking) {
				err := ask(kept)
				s.texts = append(s.texts, err)
				require.Error(t, err)
				m := s.Machine
				m.Before = kept
				require.Equal(t, remediations.CallRefused, s.act(t.Context(), m, yes).outcome)
				require.Len(t, s.changes(), 1, "the accepted one")
			})
		}})
	}
	return all
}
