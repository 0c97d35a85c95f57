package providertest

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

const (
	// Slowly is the delay of each answer of a slow backend.
	Slowly = 100 * time.Millisecond
	// The answers that an Act may wait for before its change, unless the provider sets
	// AnswersBefore. A call must follow its intent within ten seconds, and a slow backend takes
	// three seconds for each answer.
	answersBefore = 3
)

func unwellCases() []aCase {
	var all []aCase
	for i, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		f := Fault{Kind: Answer, Status: status}
		all = append(all, aCase{"wrong once: " + f.String(), func(t testing.TB, p Provider) { wrongOnce(t, p, f, i) }})
	}
	return append(all,
		aCase{"slow: each answer", func(t testing.TB, p Provider) {
			require.LessOrEqual(t, slices.IndexFunc(clean(t, p), changes), cmp.Or(p.AnswersBefore, answersBefore), "the provider needs too many answers of a slow backend between the intent and the change; use the result of Survey")
			in(t, p, patience, func(s *scene) {
				o := s.actWith(0, -1, Fault{Kind: Slow, Done: true})
				require.Equal(t, remediations.CallAccepted, o.outcome, "%v", o.err)
				s.requireTrue(o)
				require.Equal(t, []string{s.ID}, s.Changed())
			})
		}},
		aCase{"half broken: every second answer", func(t testing.TB, p Provider) {
			for first := range 2 {
				in(t, p, patience, func(s *scene) {
					m := s.ready()
					for at := first; at < 2*len(Stages)+20; at += 2 {
						s.Wire.Misbehave(at, 1, s.tattle(Fault{Kind: Answer, Status: http.StatusInternalServerError}, first))
					}
					o := s.act(t.Context(), m, yes)
					require.False(t, o.account(), "%v", o.err)
					s.requireTrue(o)
				})
			}
		}},
		aCase{"survey: what act refuses", func(t testing.TB, p Provider) {
			var names []string
			in(t, p, patience, func(s *scene) {
				for name := range s.Refuses {
					names = append(names, name)
				}
			})
			slices.Sort(names)
			for _, name := range names {
				in(t, p, patience, func(s *scene) {
					s.ready() // the control: the survey of a healthy machine finds nothing
					m := s.Refuses[name]()
					o := s.act(t.Context(), m, yes)
					require.Equal(t, remediations.CallRefused, o.outcome, "%s: %v", name, o.err)
					s.requireNothing()
					said := s.survey(t.Context(), m)
					require.NotEmpty(t, said.Trouble, "%s: Act refuses the machine, and Survey did not report that in advance", name)
					require.False(t, said.Fleetwide, "%s: it concerns one machine", name)
				})
			}
		}},
	)
}

// wrongOnce injects one wrong answer into an Act, at each of its requests in turn. The attempt must
// not be spent, and the next call must succeed.
func wrongOnce(t testing.TB, p Provider, f Fault, salt int) {
	t.Helper()
	for _, r := range clean(t, p) {
		in(t, p, patience, func(s *scene) {
			o := s.actWith(r.Number, 1, s.tattle(f, salt))
			s.requireTrue(o)
			if p.PerMachine {
				require.False(t, o.account(), "one answer at %s: %v", r.What, o.err)
			}
			if o.outcome != remediations.CallRefused {
				return
			}
			given := !o.asked || errors.Is(o.err, engine.ErrPassing) || errors.Is(o.err, engine.ErrLater) || o.account()
			require.True(t, given && !errors.Is(o.err, engine.ErrUnable), "one wrong answer at %s spends the attempt: %v", r.What, o.err)
			if (r.Number+salt)%2 == 0 { // only one of the two machines: some backends change one machine at a time
				s.requireWell(s.Neighbour, s.NeighbourID, "another machine")
				return
			}
			next := s.Machine
			next.Attempt = another(next.Attempt)
			s.requireWell(next, s.ID, "the machine itself")
		})
	}
}

// requireWell asserts that Survey and Act accept the machine.
func (s *scene) requireWell(m engine.Machine, id, whose string) {
	s.t.Helper()
	if _, asks := s.Actuator.(engine.Surveyor); asks {
		said := s.survey(s.t.Context(), m)
		require.Empty(s.t, said.Trouble, "after one wrong answer, Survey refuses %s", whose)
		m.Before = said.Before
	}
	o := s.act(s.t.Context(), m, yes)
	require.Equal(s.t, remediations.CallAccepted, o.outcome, "after one wrong answer, Act refuses %s: %v", whose, o.err)
	require.Contains(s.t, s.Changed(), id)
}
