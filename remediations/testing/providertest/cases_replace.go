package providertest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// What a provider may report at this stage of a replacement: the old machine is gone, the
// replacement is complete.
func (st Stage) proves(p Provider) (gone, whole bool) {
	switch st {
	case OldGone:
		return true, p.PromisesNone
	case Wanted:
		return true, false
	case NameAgain, Whole:
		return true, true
	default:
		return false, false
	}
}

func replaceCases() []aCase {
	var all []aCase
	for _, stage := range slices.Concat(Stages, []Stage{Wanted}) {
		all = append(all, aCase{"replacement: " + string(stage), func(t testing.TB, p Provider) {
			if stage == Wanted && !p.PromisesNone {
				return
			}
			replacing(t, p, func(s *scene, before remediations.Before, replacer engine.Replacer) {
				may := s.Stage(stage)
				said, err := replacer.Replaced(t.Context(), before)
				s.texts = append(s.texts, err, said.Missing)
				gone, whole := stage.proves(p)
				if err != nil { // an error proves nothing
					require.False(t, gone, "%v", err)
					return
				}
				require.Equal(t, gone, said.MachineGone, "MachineGone; missing: %s", said.Missing)
				require.Equal(t, whole, said.Missing == "", "missing: %s", said.Missing)
				require.NotContains(t, said.Successors, s.Machine.ProviderID, "the old machine is not its own successor")
				require.NotContains(t, said.Successors, s.Neighbour.ProviderID, "a machine that was there before is not a successor")
				require.Equal(t, whole && stage == OldGone, said.NoneNeeded, "NoneNeeded; missing: %s", said.Missing)
				if whole && !said.NoneNeeded {
					require.NotEmpty(t, said.Successors)
				}
				require.Subset(t, may, said.Successors)
			})
		}})
	}
	return append(all, proof{"replacement", func(t testing.TB, p Provider, what func(*scene, remediations.Before, asking)) {
		replacing(t, p, func(s *scene, before remediations.Before, replacer engine.Replacer) {
			s.Stage(Whole)
			what(s, before, func(kept remediations.Before) error {
				_, err := replacer.Replaced(t.Context(), kept)
				return err
			})
		})
	}}.cases()...)
}

// The provider replaces the machine at a backend that accepts the call. The function what follows.
func replacing(t testing.TB, p Provider, what func(s *scene, before remediations.Before, replacer engine.Replacer)) {
	t.Helper()
	in(t, p, patience, func(s *scene) {
		replacer, ok := s.Actuator.(engine.Replacer)
		require.True(t, ok, "the provider is not an engine.Replacer; give the reason in DoesNotApply")
		m := s.ready()
		require.NotEmpty(t, m.Before, "Survey returned nothing that identifies the machine later")
		require.Equal(t, remediations.CallAccepted, s.act(t.Context(), m, yes).outcome)
		what(s, m.Before, replacer)
	})
}
