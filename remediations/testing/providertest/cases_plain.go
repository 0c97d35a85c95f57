package providertest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

func plainCases() []aCase {
	return []aCase{
		{"one machine, one change", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				m := s.ready()
				s.requireNothing()
				o := s.act(t.Context(), m, yes)
				require.Equal(t, remediations.CallAccepted, o.outcome, "%v", o.err)
				s.requireTrue(o)
				require.Equal(t, []string{s.ID}, s.Changed())
				require.Len(t, s.changes(), 1)
			})
		}},
		{"each machine is changed by its own call", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				first, second := s.ready(), s.Neighbour
				if first.Before != "" {
					second.Before = s.survey(t.Context(), second).Before
				}
				outcomes := make(chan outcome, 2)
				for _, m := range []struct{ call func() outcome }{
					{func() outcome { got, err := s.Actuator.Act(t.Context(), first, yes); return outcome{got, err, true} }},
					{func() outcome { got, err := s.Actuator.Act(t.Context(), second, yes); return outcome{got, err, true} }},
				} {
					go func() { outcomes <- m.call() }()
				}
				for range 2 {
					o := <-outcomes
					require.Equal(t, remediations.CallAccepted, o.outcome, "%v", o.err)
				}
				require.ElementsMatch(t, []string{s.ID, s.NeighbourID}, s.Changed())
				require.Len(t, s.changes(), 2)
			})
		}},
		{"survey", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				for range 2 {
					require.Empty(t, s.survey(t.Context(), s.Machine).Trouble, "a machine that is well")
				}
				require.NotEmpty(t, s.Wire.Requests(), "the provider sent no request")
				s.requireNothing()
			})
		}},
		{"testimony", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				require.Equal(t, signs.Well, s.testify(t.Context(), s.Machine).Answer, "a machine that runs")
				s.requireNothing()
			})
		}},
	}
}

func identityCases() []aCase {
	var all []aCase
	for _, which := range Scenes {
		all = append(all,
			aCase{"survey: " + string(which), func(t testing.TB, p Provider) {
				in(t, p, patience, func(s *scene) {
					s.ready() // the control: Survey accepts the machine before the scene; the provider must not rely on having seen it
					m := s.Set(which)
					said := s.survey(t.Context(), m)
					require.NotEmpty(t, said.Trouble)
					require.Empty(t, said.Before)
					require.Positive(t, said.Again, "when to ask again")
					s.requireNothing()
				})
			}},
			aCase{"act: " + string(which), func(t testing.TB, p Provider) {
				for _, known := range []bool{true, false} {
					in(t, p, patience, func(s *scene) {
						before := s.ready().Before
						m := s.Set(which)
						if !known {
							m.Before = ""
						} else if m.Before == "" {
							m.Before = before
						}
						o := s.act(t.Context(), m, yes)
						require.False(t, o.account(), "it concerns one machine, and not the account: %v", o.err)
						if known && which == TwoMachines && p.KeepsMachine {
							require.Equal(t, []string{s.ID}, s.Changed())
							return
						}
						require.Equal(t, remediations.CallRefused, o.outcome, "%v", o.err)
						s.requireNothing()
					})
				}
			}},
			aCase{"testimony: " + string(which), func(t testing.TB, p Provider) {
				in(t, p, patience, func(s *scene) {
					require.Equal(t, signs.Unknown, s.testify(t.Context(), s.Set(which)).Answer)
					s.requireNothing()
				})
			}},
		)
	}
	return append(all, aCase{"exchanged at the last moment", func(t testing.TB, p Provider) {
		in(t, p, patience, func(s *scene) {
			o := s.act(t.Context(), s.ready(), func() error {
				s.Set(AnotherOfItsName)
				return nil
			})
			require.NotContains(t, s.Changed(), s.NeighbourID)
			s.requireTrue(o)
		})
	}})
}

func onceCases() []aCase {
	return []aCase{
		{"mayStill says no", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				no := errors.New("this replica no longer leads")
				m := s.ready()
				o := s.act(t.Context(), m, func() error { return no })
				require.Equal(t, remediations.CallRefused, o.outcome)
				require.ErrorIs(t, o.err, no)
				require.ErrorContains(t, o.err, no.Error())
				require.False(t, o.account())
				s.requireNothing()
				require.Equal(t, remediations.CallAccepted, s.act(t.Context(), m, yes).outcome, "the control")
			})
		}},
		{"mayStill is asked last", func(t testing.TB, p Provider) {
			in(t, p, patience, func(s *scene) {
				asked, connects := -1, 0
				o := s.act(t.Context(), s.ready(), func() error {
					asked = len(s.Wire.Requests())
					connects, _ = s.Wire.Connects()
					return nil
				})
				require.Equal(t, remediations.CallAccepted, o.outcome, "%v", o.err)
				require.NotEqual(t, -1, asked, "mayStill was not called")
				sent := s.changes()[0]
				require.Equal(t, asked, sent.Number, "the provider sent another request between mayStill and the change: %v", s.Wire.Requests()[asked:])
				if _, reliable := s.Wire.Connects(); reliable {
					require.Positive(t, connects)
					now, _ := s.Wire.Connects()
					after := len(s.Wire.Requests()) - 1 - sent.Number // a session may be closed over a connection of its own after the change
					require.LessOrEqual(t, now, connects+after, "the connection for the change was made after the call of mayStill")
				}
			})
		}},
	}
}
