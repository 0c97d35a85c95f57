package providertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

func contextCases() []aCase {
	return []aCase{
		{"a context that is over", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				m := s.ready()
				before := len(s.Wire.Requests())
				over, cancel := context.WithCancel(t.Context())
				cancel()
				o := s.act(over, m, yes)
				require.Equal(t, remediations.CallRefused, o.outcome, "%v", o.err)
				s.requireNothing()
				require.Len(t, s.Wire.Requests(), before, "the provider sent a request")
			})
		}},
		{"a context that ends while mayStill is asked", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				o := s.act(ctx, s.ready(), func() error {
					cancel()
					return nil
				})
				require.Equal(t, remediations.CallRefused, o.outcome, "%v", o.err)
				s.requireNothing()
			})
		}},
		{"a survey whose context ends", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				ended := s.giveUp(func(ctx context.Context) { require.NotEmpty(t, s.survey(ctx, s.Machine).Trouble) })
				require.Less(t, ended, soon)
				s.requireNothing()
			})
		}},
		{"testimony: its context ends", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				ended := s.giveUp(func(ctx context.Context) {
					require.Equal(t, signs.Unknown, s.testify(ctx, s.Machine).Answer)
				})
				require.Less(t, ended, soon)
				s.requireNothing()
			})
		}},
		{"a change whose context ends", func(t testing.TB, p Provider) {
			change := slices.IndexFunc(clean(t, p), changes)
			in(t, p, patience, func(s *scene) {
				s.abandoned = p.Outlives
				o := s.actWith(change, 1, Fault{Kind: Hang, Done: true})
				require.Equal(t, remediations.CallUnknown, o.outcome, "%v", o.err)
				require.Len(t, s.changes(), 1)
			})
		}},
		{"a look without an answer ends by itself", func(t testing.TB, p Provider) {
			byItself(t, p, Fault{Kind: Hang}, false)
		}},
		{"a change without an answer ends by itself", func(t testing.TB, p Provider) {
			byItself(t, p, Fault{Kind: Hang, Done: true}, true)
		}},
		{"an answer that trickles ends by itself", func(t testing.TB, p Provider) {
			byItself(t, p, Fault{Kind: Trickle, Done: true}, true)
		}},
	}
}

// giveUp cancels the call when the first request has arrived at the backend. It returns how long
// the call continued after that.
func (s *scene) giveUp(call func(context.Context)) time.Duration {
	s.t.Helper()
	s.Wire.Misbehave(0, -1, Fault{Kind: Hang})
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	arrived := make(chan time.Time, 1)
	go func() {
		if s.Wire.Await(ctx, func(Request) bool { return true }) {
			arrived <- time.Now()
		}
		cancel()
	}()
	call(ctx)
	return time.Since(<-arrived)
}

// byItself asserts that a call ends by the provider's own time limit. If change is true, the fault
// f meets the request for a change, and otherwise the first request that changes nothing. From
// there on it meets all requests.
func byItself(t testing.TB, p Provider, f Fault, change bool) {
	t.Helper()
	asked := clean(t, p)
	reaching(t, p, func(s *scene, limit time.Duration) bool {
		m, trouble := s.surveyed()
		if trouble != "" {
			return false
		}
		before := len(s.Wire.Requests())
		s.Wire.Misbehave(slices.IndexFunc(asked, func(r Request) bool { return r.Changes == change }), -1, f)
		began := time.Now()
		o := s.act(t.Context(), m, yes)
		require.Less(t, time.Since(began), time.Duration(len(asked)+4)*limit+soon, "the call did not end by the provider's own time limit")
		s.requireTrue(o)
		want := remediations.CallRefused
		if change {
			want = remediations.CallUnknown
		}
		if len(s.Wire.Requests()) == before || change && len(s.changes()) == 0 {
			return false
		}
		require.Equal(t, want, o.outcome, "%v", o.err)
		return true
	})
}
