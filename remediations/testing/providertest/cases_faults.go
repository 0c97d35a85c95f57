package providertest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

func changes(r Request) bool { return r.Changes }

// The requests that an Act without any fault sends, numbered from 0.
func clean(t testing.TB, p Provider) []Request {
	t.Helper()
	var asked []Request
	in(t, p, patience, func(s *scene) {
		m := s.ready()
		before := len(s.Wire.Requests())
		require.Equal(t, remediations.CallAccepted, s.act(t.Context(), m, yes).outcome)
		asked = s.Wire.Requests()[before:]
	})
	for i := range asked {
		asked[i].Number = i
	}
	return asked
}

// actWith injects the fault f into count of an Act's requests, from the request number first. If
// that request gets no complete answer, actWith cancels the call.
func (s *scene) actWith(first, count int, f Fault) outcome {
	s.t.Helper()
	m, trouble := s.surveyed()
	if trouble != "" {
		return outcome{remediations.CallRefused, errors.New(trouble), false}
	}
	s.asked = len(s.Wire.Requests())
	s.Wire.Misbehave(first, count, f)
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	if !f.silent() {
		return s.act(ctx, m, yes)
	}
	arrived := make(chan time.Time, 1)
	go func() {
		if s.Wire.Await(ctx, func(r Request) bool { return r.Number == s.asked+first }) {
			arrived <- time.Now()
			cancel()
		}
	}()
	o := s.act(ctx, m, yes)
	select {
	case at := <-arrived:
		require.Less(s.t, time.Since(at), soon, "the call did not end soon after its context")
	default:
	}
	return o
}

func lookCases() []aCase {
	var all []aCase
	for i, f := range faults() {
		all = append(all,
			aCase{"one look: " + f.String(), func(t testing.TB, p Provider) {
				asked := clean(t, p)
				change := slices.IndexFunc(asked, changes)
				for _, r := range slices.DeleteFunc(asked, changes) {
					in(t, p, patience, func(s *scene) {
						o := s.actWith(r.Number, 1, s.tattle(f, i))
						s.requireTrue(o)
						if r.Number > change {
							require.Equal(t, remediations.CallAccepted, o.outcome, "%s was sent after the answer: %v", r.What, o.err)
							return
						}
						if o.outcome != remediations.CallAccepted { // it was sent again, or another request found out the same
							require.Equal(t, remediations.CallRefused, o.outcome, "nothing but %s was sent: %v", r.What, o.err)
							require.Empty(t, s.changes())
							s.requirePassing(o, f)
						}
					})
				}
			}},
			aCase{"every look: " + f.String(), func(t testing.TB, p Provider) { everyLook(t, p, f, i) }},
		)
	}
	return all
}

// requirePassing asserts that the error is ErrPassing if the fault may pass in a moment, and
// another error if the API refused the call. After ErrPassing the engine repeats the call without
// using up the attempt, so it is wrong after mayStill.
func (s *scene) requirePassing(o outcome, f Fault) {
	s.t.Helper()
	passing := errors.Is(o.err, engine.ErrPassing)
	require.False(s.t, passing && o.asked, "Act called mayStill although it could not read what the call needs, and that spends the attempt: %v", o.err)
	switch {
	case f.Kind == Gone, f.Kind == Cut, f.Kind == Hang:
		require.True(s.t, passing, "no answer came, which may pass in a moment, and the error is not ErrPassing: %v", o.err)
	case f.Kind == Answer && f.Status < http.StatusInternalServerError, f.Kind == Answer && f.Status == http.StatusServiceUnavailable:
		require.False(s.t, passing, "the API refused the call or asked for a later one, and the error is ErrPassing: %v", o.err)
	}
}

// everyLook injects the fault f into every request of an Act, and then of Survey and Testify:
// nothing may be changed, and the fault must be reported. salt varies the texts in the answers.
func everyLook(t testing.TB, p Provider, f Fault, salt int) {
	t.Helper()
	in(t, p, patience, func(s *scene) {
		o := s.actWith(0, -1, s.tattle(f, salt))
		require.Equal(t, remediations.CallRefused, o.outcome, "%v", o.err)
		s.requireNothing()
		s.requirePassing(o, f)
		if f.Kind == Gone || f.Kind == Cut || f.Kind == Hang {
			var concern interface{ Survey() remediations.Survey }
			if errors.As(o.err, &concern) { // only an error with a method Survey is checked
				require.Equal(t, !p.PerMachine, concern.Survey().Fleetwide, "only an error about one machine may allow onUnreachable: continue: %v", o.err)
			}
		}
		if f.Kind != Page { // a page with such a status may come from the API itself
			require.Equal(t, f.refusesAccount(p), o.account(), "%v", o.err)
		}
		if f.Kind == Answer && f.Status == http.StatusUnauthorized {
			require.Len(t, s.Wire.Requests()[s.asked:], 1, "the provider repeated a refused request, and a backend may lock the account for that")
		}
	})
	if f.silent() {
		return // contextCases tests these
	}
	for _, ask := range []string{"survey", "testimony"} {
		if _, not := p.DoesNotApply[ask]; not {
			continue
		}
		in(t, p, patience, func(s *scene) {
			s.Wire.Misbehave(0, -1, s.tattle(f, salt))
			if ask == "testimony" {
				require.Equal(t, signs.Unknown, s.testify(t.Context(), s.Machine).Answer)
				return
			}
			said := s.survey(t.Context(), s.Machine)
			require.NotEmpty(t, said.Trouble)
			require.Empty(t, said.Before)
			require.Positive(t, said.Again)
			if f.Kind == Answer && (f.Status == http.StatusTooManyRequests || f.Status == http.StatusServiceUnavailable) {
				require.Len(t, s.Wire.Requests(), 1, "the provider repeated the request before the time that the backend named")
				require.GreaterOrEqual(t, said.Again, retryAfter*time.Second)
			}
			s.requireNothing()
		})
	}
}

func changeCases() []aCase {
	var all []aCase
	for i, f := range faults() {
		all = append(all, aCase{"the change: " + f.String(), func(t testing.TB, p Provider) {
			change := slices.IndexFunc(clean(t, p), changes)
			holds := func(s *scene, o outcome) {
				want, account := f.demanded(p)
				require.Equal(t, want, o.outcome, "%v", o.err)
				require.Equal(t, account, o.account(), "%v", o.err)
				s.requireTrue(o)
				require.Equal(t, f.Done, len(s.Changed()) == 1, "what was really done")
			}
			if f.silent() {
				reaching(t, p, func(s *scene, _ time.Duration) bool {
					o := s.actWith(change, 1, s.tattle(f, i))
					if len(s.changes()) == 0 {
						return false
					}
					holds(s, o)
					return true
				})
				return
			}
			in(t, p, patience, func(s *scene) {
				holds(s, s.actWith(change, 1, s.tattle(f, i)))
				if f.Kind != Gone {
					require.Len(t, s.changes(), 1, "the request for the change did not arrive, or another one arrived with it")
				}
			})
		}})
	}
	return all
}
