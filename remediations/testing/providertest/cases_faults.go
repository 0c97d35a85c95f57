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

// clean returns the requests of a whole Act when nothing goes wrong.
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

// actWith calls Act while the requests from the first on suffer the fault. If the fault leaves the
// first request without an answer, actWith cancels the call once that request has arrived and its
// work is done.
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

// lookCases: something goes wrong with a request that changes nothing.
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
							require.Equal(t, remediations.CallAccepted, o.outcome, "%s came after the answer: %v", r.What, o.err)
							return
						}
						if o.outcome != remediations.CallAccepted { // it was sent again, or another request found out the same
							require.Equal(t, remediations.CallRefused, o.outcome, "nothing was sent but %s: %v", r.What, o.err)
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

// requirePassing asserts that the error shows the engine which refusals may pass in a moment. The
// engine then tries again within the attempt, and gives the attempt back if the refusal lasts. It
// does both only for a call that did not reach mayStill.
func (s *scene) requirePassing(o outcome, f Fault) {
	s.t.Helper()
	passing := errors.Is(o.err, engine.ErrPassing)
	require.False(s.t, passing && o.asked, "mayStill was asked although it could not be read what the call needs, and that spends the attempt: %v", o.err)
	switch {
	case f.Kind == Gone, f.Kind == Cut, f.Kind == Hang:
		require.True(s.t, passing, "nobody answered, which may be over in a moment, and the error is not ErrPassing: %v", o.err)
	case f.Kind == Answer && f.Status < http.StatusInternalServerError, f.Kind == Answer && f.Status == http.StatusServiceUnavailable:
		require.False(s.t, passing, "it was refused, or is to be asked later, and the error is ErrPassing: %v", o.err)
	}
}

// everyLook: every request suffers the fault, from the first on.
func everyLook(t testing.TB, p Provider, f Fault, salt int) {
	t.Helper()
	in(t, p, patience, func(s *scene) {
		o := s.actWith(0, -1, s.tattle(f, salt))
		require.Equal(t, remediations.CallRefused, o.outcome, "%v", o.err)
		s.requireNothing()
		s.requirePassing(o, f)
		if f.Kind == Gone || f.Kind == Cut || f.Kind == Hang {
			var concern interface{ Survey() remediations.Survey }
			if errors.As(o.err, &concern) { // an error without a concern is not checked
				require.Equal(t, !p.PerMachine, concern.Survey().Fleetwide, "onUnreachable: continue is for one machine's outage alone: %v", o.err)
			}
		}
		if f.Kind != Page { // a page with such a status may be the API's own
			require.Equal(t, f.refusesAccount(p), o.account(), "%v", o.err)
		}
		if f.Kind == Answer && f.Status == http.StatusUnauthorized {
			require.Len(t, s.Wire.Requests()[s.asked:], 1, "who was refused asks again, and an account is locked for that")
		}
	})
	if f.silent() {
		return // contextCases
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
				require.Len(t, s.Wire.Requests(), 1, "the other side said when it may be asked again")
				require.GreaterOrEqual(t, said.Again, retryAfter*time.Second)
			}
			s.requireNothing()
		})
	}
}

// changeCases: something goes wrong with the only request that changes something.
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
					require.Len(t, s.changes(), 1, "the request did not arrive, or not alone")
				}
			})
		}})
	}
	return all
}
