package providertest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// An earlier process has already begun the attempt: its intent is on record, so mayStill refuses
// the call.
var errOnRecord = errors.New("the intent is on record, so the attempt counts as made")

func crashCases() []aCase {
	return []aCase{
		{"a crash before the work", func(t testing.TB, p Provider) { crashing(t, p, false) }},
		{"a crash after the work", func(t testing.TB, p Provider) { crashing(t, p, true) }},
		{"the same attempt again after a crash", func(t testing.TB, p Provider) {
			change := slices.IndexFunc(clean(t, p), changes)
			in(t, p, patience, func(s *scene) {
				m := s.crash(change, true)
				require.Equal(t, []string{s.ID}, s.Changed())
				s.Actuator = s.Again()
				o := s.act(t.Context(), m, yes)
				require.Equal(t, []string{s.ID}, s.Changed(), "one attempt led to two changes: %v", o.err)
				if o.outcome != remediations.CallRefused { // the backend did not refuse the repeated request
					require.Len(t, s.changes(), 1, "one attempt was requested twice, and the backend accepted both: %v", o.err)
				}
			})
		}},
	}
}

// crashing ends the process at each of an Act's requests in turn, with the requested work done or
// not. A new provider, which has only the record, must change nothing by itself, and must not
// repeat the attempt when mayStill refuses.
func crashing(t testing.TB, p Provider, done bool) {
	t.Helper()
	asked := clean(t, p)
	change := slices.IndexFunc(asked, changes)
	for _, r := range asked {
		in(t, p, patience, func(s *scene) {
			m := s.crash(r.Number, done)
			was := len(s.changes())
			require.Equal(t, r.Number >= change, was == 1, "requests for a change that had left when the process ended at %s", r.What)
			s.Actuator = s.Again()
			require.NotNil(t, s.Actuator, "Again returned no provider")
			o := s.act(t.Context(), m, func() error { return errOnRecord })
			require.Equal(t, remediations.CallRefused, o.outcome, "%v", o.err)
			s.look()
			require.Len(t, s.changes(), was, "the process ended at %s, and the next one requested a change", r.What)
			require.LessOrEqual(t, len(s.Changed()), 1)
			if r.Number < change { // the control: another attempt succeeds
				m := s.ready()
				m.Attempt = another(m.Attempt)
				require.Equal(t, remediations.CallAccepted, s.act(t.Context(), m, yes).outcome)
				require.Equal(t, []string{s.ID}, s.Changed())
			}
		})
	}
}

// The process ends at the request with the number at, so that its answer is lost. It returns the
// machine with the facts that are on record.
func (s *scene) crash(at int, done bool) engine.Machine {
	s.t.Helper()
	require.NotNil(s.t, s.Again, "the World has no Again")
	m := s.ready()
	from := len(s.Wire.Requests())
	s.Wire.Misbehave(at, 1, Fault{Kind: Hang, Done: done})
	s.abandoned = s.p.Outlives
	ctx, crash := context.WithCancel(s.t.Context())
	defer crash()
	go func() {
		s.Wire.Await(ctx, func(r Request) bool { return r.Number == from+at })
		crash()
	}()
	s.act(ctx, m, yes)
	return m
}

func (s *scene) look() {
	if surveyor, ok := s.Actuator.(engine.Surveyor); ok {
		said := surveyor.Survey(s.t.Context(), s.Machine)
		s.texts = append(s.texts, said.Trouble, said.Evidence)
	}
	if witness, ok := s.Actuator.(engine.Witness); ok {
		s.texts = append(s.texts, witness.Testify(s.t.Context(), s.Machine, signs.Sign{Kind: signs.NotRunning}).Saw)
	}
}

func another(attempt string) string { return attempt + "1" }
