package providertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

func powerCases() []aCase {
	var all []aCase
	for name, on := range map[string]bool{"power: the machine is on": true, "power: the machine is off": false} {
		all = append(all, aCase{name, func(t testing.TB, p Provider) {
			poweringOff(t, p, func(s *scene, before remediations.Before, prover engine.PowerProver) {
				s.Power(on)
				missing, err := prover.PoweredOff(t.Context(), before)
				s.texts = append(s.texts, err, missing)
				require.NoError(t, err)
				require.Equal(t, on, missing != "", missing)
			})
		}})
	}
	return append(all, proof{"power", func(t testing.TB, p Provider, what func(*scene, remediations.Before, asking)) {
		poweringOff(t, p, func(s *scene, before remediations.Before, prover engine.PowerProver) {
			s.Power(false)
			what(s, before, func(kept remediations.Before) error {
				_, err := prover.PoweredOff(t.Context(), kept)
				return err
			})
		})
	}}.cases()...)
}

// The provider switches the machine off at a backend without faults. Then the function what asks
// for the proof.
func poweringOff(t testing.TB, p Provider, what func(s *scene, before remediations.Before, prover engine.PowerProver)) {
	t.Helper()
	if !p.PowersOff {
		return
	}
	in(t, p, patience, func(s *scene) {
		prover, ok := s.Actuator.(engine.PowerProver)
		require.True(t, ok, "the provider is not an engine.PowerProver")
		m := s.ready()
		require.NotEmpty(t, m.Before, "Survey returned nothing that identifies the machine later")
		require.Equal(t, remediations.CallAccepted, s.act(t.Context(), m, yes).outcome)
		what(s, m.Before, prover)
	})
}
