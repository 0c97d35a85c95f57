package rescue

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/rescue/apiserver"
	"drydock.dev/drydock/remediations/rescue/statefile"
)

// TestFirstHostThatFailsIsRestarted: one restart makes an API server work again, and the rescue
// does not touch the other hosts.
func TestFirstHostThatFailsIsRestarted(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		g := p.start("a", p.config)
		p.pass(time.Minute)
		require.Empty(t, p.logs(), "nothing is wrong")
		p.down()
		p.pass(2 * time.Minute)
		g.kill()
		require.Equal(t, []string{"cp-1 r00001-1"}, p.logs())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, p.outcomes(t, "a"))
		e := p.journal(t, "a").Ended[0]
		require.Equal(t, "kubelet: bye", e.Hosts[0].Evidence)
		p.requireClaims(t, "a")
	})
	require.Empty(t, p.bad)
	var reasons []string
	for _, e := range p.events {
		reasons = append(reasons, e.Reason)
	}
	require.Equal(t, []string{"RepairStarted", "RepairStepIssued", "RepairVerifying", "RepairEvidence", "RepairRecovered"}, reasons)
}

// TestOneThatWorksEndsIt: when one API server works, the rescue does not restart the other two
// hosts.
func TestOneThatWorksEndsIt(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		p.do(func() { p.hosts["cp-3"].up = true })
		p.start("a", p.config)
		p.pass(time.Hour)
	})
	require.Empty(t, p.logs())
	require.Empty(t, p.bad)
}

// TestEachHostInItsTurn: the rescue tries each host once. After hosts that do not help, cannot be
// reached or lie, it tries the next one. In the end a person must check the hosts.
func TestEachHostInItsTurn(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		p.do(func() { p.hosts["cp-1"].dead, p.hosts["cp-2"].lies, p.hosts["cp-3"].cures = true, true, false })
		g := p.start("a", p.config)
		p.pass(time.Hour)
		g.kill()
		require.Equal(t, []string{"cp-3 r00001-3"}, p.logs())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, p.outcomes(t, "a"))
		// It stays so after any restart, until a person resets it.
		g = p.start("a", p.config)
		p.pass(time.Hour)
		p.do(func() { require.Len(t, p.restarted, 2, "cp-2 was asked, and cp-3") })
		p.do(func() { p.hosts["cp-1"].dead = false })
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, "a", statefile.Reset), nil, 0o600))
		p.pass(5 * time.Minute)
		require.NoFileExists(t, filepath.Join(p.dir, "a", statefile.Reset))
		g.kill()
		require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted, remediations.OutcomeRecovered}, p.outcomes(t, "a"))
	})
	require.Empty(t, p.bad)
}

// TestTenMinutesAreAllItHas: the rescue ends after ten minutes, even if hosts neither answer nor
// refuse.
func TestTenMinutesAreAllItHas(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		c := *p.config
		c.ControlPlaneHosts = nil
		for i := range 20 {
			name := fmt.Sprintf("h-%d", i)
			c.ControlPlaneHosts = append(c.ControlPlaneHosts, name)
			p.hosts[name] = &planeHost{stuck: true}
		}
		p.config = &c
		p.down()
		g := p.start("a", p.config)
		p.pass(12 * time.Minute)
		g.kill()
		e := p.journal(t, "a").Ended[0]
		require.Equal(t, remediations.OutcomeExhausted, e.Outcome)
		require.InDelta(t, 600, e.Ended.Sub(e.Hosts[0].At).Seconds(), 15)
		require.Greater(t, len(e.Hosts), 4)
	})
	require.Empty(t, p.bad)
}

// TestPeopleBetweenTwoHosts: each of these holds the restart of the second host: a pause, a
// silence, an inhibition, the end of the alert, and an Alertmanager that does not answer. The
// control continues without them.
func TestPeopleBetweenTwoHosts(t *testing.T) {
	for name, of := range map[string]struct{ on, off func(p *plane) }{
		"paused": {
			func(p *plane) {
				_ = os.WriteFile(filepath.Join(p.dir, "a", statefile.Paused), []byte("racks"), 0o600)
			},
			func(p *plane) { _ = os.Remove(filepath.Join(p.dir, "a", statefile.Paused)) },
		},
		"silenced":  {func(p *plane) { p.silenced = true }, func(p *plane) { p.silenced = false }},
		"inhibited": {func(p *plane) { p.inhibited = true }, func(p *plane) { p.inhibited = false }},
		"resolved":  {func(p *plane) { p.firing = false }, func(p *plane) { p.firing = true }},
		"deaf":      {func(p *plane) { p.deaf = true }, func(p *plane) { p.deaf = false }},
		"hung":      {func(p *plane) { p.hangs = true }, func(p *plane) { p.hangs = false }},
		"unknown":   {func(p *plane) { p.hosts["cp-2"].unknown, p.hosts["cp-3"].unknown = true, true }, func(p *plane) { p.hosts["cp-2"].unknown = false }},
	} {
		t.Run(name, func(t *testing.T) {
			p := onPlane(t, func(p *plane) {
				p.down()
				p.do(func() { p.hosts["cp-1"].cures = false })
				g := p.start("a", p.config)
				p.pass(30 * time.Second)
				require.Len(t, p.logs(), 1)
				p.do(func() { of.on(p) })
				p.pass(3 * time.Minute)
				require.Len(t, p.logs(), 1)
				p.do(func() { of.off(p) })
				p.pass(3 * time.Minute)
				g.kill()
				require.Equal(t, []string{"cp-1 r00001-1", "cp-2 r00001-2"}, p.logs())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, p.outcomes(t, "a"))
			})
			require.Empty(t, p.bad)
		})
	}
}

// TestPauseInTheLastMoment: a pause stops a command that is already on its way to the host. The
// host's attempt does not count.
func TestPauseInTheLastMoment(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		paused, once := filepath.Join(p.dir, "a", statefile.Paused), sync.Once{}
		p.core.mayStill = func(j apiserver.RescueJournal, attempt string, now time.Time) error {
			once.Do(func() {
				_ = os.WriteFile(paused, nil, 0o600)
				j.Paused = new(string)
			})
			return apiserver.MayStillRescue(j, attempt, now)
		}
		g := p.start("a", p.config)
		p.pass(5 * time.Minute)
		p.do(func() { require.Empty(t, p.restarted) })
		require.NoError(t, os.Remove(paused))
		p.pass(3 * time.Minute)
		g.kill()
		require.Equal(t, []string{"cp-1 r00001-2"}, p.logs())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, p.outcomes(t, "a"))
	})
	require.Empty(t, p.bad)
}

// TestAHostThatIsReachedTooLateLosesItsTurn: the intent for cp-1 is too old when cp-1 is reached,
// so the rescue restarts the next host.
func TestAHostThatIsReachedTooLateLosesItsTurn(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		p.do(func() { p.hosts["cp-1"].far = 11 * time.Second })
		g := p.start("a", p.config)
		p.pass(5 * time.Minute)
		g.kill()
		require.Equal(t, []string{"cp-2 r00001-2"}, p.logs())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, p.outcomes(t, "a"))
		try := p.journal(t, "a").Ended[0].Hosts[0]
		require.Equal(t, remediations.CallRefused, try.Outcome)
		require.Contains(t, try.Why, "the intent is older than 10s")
	})
	require.Empty(t, p.bad)
}

// TestAPauseOnTheWayToASlowHost: the host is reached too late, but a pause counts first, so the
// host does not lose its turn.
func TestAPauseOnTheWayToASlowHost(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		p.do(func() { p.hosts["cp-1"].far = 11 * time.Second })
		g := p.start("a", p.config)
		p.pass(5 * time.Second)
		paused := filepath.Join(p.dir, "a", statefile.Paused)
		require.NoError(t, os.WriteFile(paused, nil, 0o600))
		p.pass(time.Minute)
		p.do(func() { p.hosts["cp-1"].far = 0 })
		require.NoError(t, os.Remove(paused))
		p.pass(3 * time.Minute)
		g.kill()
		require.Equal(t, []string{"cp-1 r00001-2"}, p.logs())
	})
	require.Empty(t, p.bad)
}

// TestRescueInObserveModeRestartsNothing: it reports the restart that it would do.
func TestRescueInObserveModeRestartsNothing(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.config.Policies[0].Mode = remediations.ModeObserve
		p.down()
		p.start("a", p.config)
		p.pass(time.Hour)
	})
	require.Empty(t, p.restarted)
	require.Empty(t, p.bad)
	require.Contains(t, p.events[len(p.events)-1].Note, "would restart the kubelet of cp-1")
}

// TestAnObservedRescueIsInTheHistory: the Node whose kubelet would have been restarted has the
// rescue in its history, once for all replicas. It does not replace a later rescue that restarts
// something.
func TestAnObservedRescueIsInTheHistory(t *testing.T) {
	for name, test := range map[string]struct {
		wellAfter   time.Duration
		unnecessary bool
		said        string
	}{
		"ready before the step's wait was over": {30 * time.Second, true, "the restart would have been unnecessary"},
		"ready long after":                      {20 * time.Minute, false, "when the step's wait had ended"},
	} {
		t.Run(name, func(t *testing.T) {
			p := onPlane(t, func(p *plane) {
				p.config.Policies[0].Mode, p.config.Policies[0].ProofFor = remediations.ModeObserve, 10*time.Second
				p.down()
				p.start("a", p.config)
				p.pass(test.wellAfter)
				p.do(func() {
					require.Empty(t, p.history)
					p.hosts["cp-2"].up, p.apiBack, p.firing = true, true, false
				})
				p.pass(5 * time.Minute)
			})
			require.Empty(t, p.restarted)
			require.Empty(t, p.bad)
			require.Len(t, p.history, 1, "of the host that would have been restarted")
			require.Len(t, p.history["cp-1"], 1)
			e := p.history["cp-1"][0]
			require.Equal(t, remediations.OutcomeObserved, e.Outcome)
			require.Equal(t, string(remediations.KindAPIServer), e.Target)
			require.Empty(t, e.Steps)
			require.Equal(t, "restart-kubelet", e.Would.Step.Name)
			require.Equal(t, test.unnecessary, e.Would.Unnecessary())
			require.Contains(t, e.Why, test.said)
			last := p.events[len(p.events)-1]
			require.Equal(t, "RepairObserved", last.Reason)
			require.Contains(t, last.Note, test.said)
		})
	}
}

// TestWhatWasObservedHoldsNoRescue: an observed rescue counts for no cooldown and for no limit.
func TestWhatWasObservedHoldsNoRescue(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.config.Policies[0].Mode, p.config.Limits.RepairsPerNode = remediations.ModeObserve, 1
		p.down()
		g := p.start("a", p.config)
		p.pass(2 * time.Minute)
		p.do(func() { p.hosts["cp-1"].up, p.hosts["cp-2"].up, p.hosts["cp-3"].up, p.firing = true, true, true, false })
		p.pass(3 * time.Minute)
		g.kill()
		require.Equal(t, []remediations.Outcome{remediations.OutcomeObserved}, p.outcomes(t, "a"))
		p.config.Policies[0].Mode = remediations.ModeEnforce
		p.down()
		p.start("a", p.config)
		p.pass(2 * time.Minute)
		p.guards[1].kill()
	})
	require.Len(t, p.restarted, 1)
	require.Empty(t, p.bad)
}

// TestAPostAloneStartsNoRescue: a forged post only makes the rescue poll Alertmanager. An alert
// that Alertmanager does not confirm holds the restart.
func TestAPostAloneStartsNoRescue(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		p.do(func() { p.firing = false })
		g := p.start("a", p.config)
		forged := p.config.NewAlert(p.config.Policies[0], map[string]string{"alertname": "KubeAPIServerDown", "remediation": "apiserver-down"}, remediations.StatusFiring, time.Now(), time.Now())
		for i := range 40 {
			forged.Fingerprint = fmt.Sprintf("f%d", i)
			g.rescue.Receive(forged)
		}
		p.pass(30 * time.Second)
		require.LessOrEqual(t, len(g.rescue.takePosts()), postedMost)
		p.do(func() { p.deaf = true })
		p.pass(20 * time.Minute)
		require.Empty(t, g.rescue.takePosts(), "what nobody repeats is forgotten")
	})
	require.Empty(t, p.restarted)
	require.Empty(t, p.bad)
}

// TestAnAlertsAgeBeginsWhenDrydockLearnsOfIt: the alert always claims that it began a minute ago. A
// restart of Drydock does not start the wait again.
func TestAnAlertsAgeBeginsWhenDrydockLearnsOfIt(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.config.Policies[0].For = time.Minute
		p.down()
		g := p.start("a", p.config)
		p.pass(40 * time.Second)
		require.Empty(t, p.logs(), "Drydock has known of it for forty seconds")
		g.kill()
		p.start("a", p.config)
		p.pass(40 * time.Second)
		require.Equal(t, []string{"cp-1 r00001-1"}, p.logs(), "for eighty")
	})
	require.Empty(t, p.bad)
}

// TestAnswersAreRemembered: the times of an alert are kept while the alert repeats, even if the
// record is about another alert, but not for ever.
func TestAnswersAreRemembered(t *testing.T) {
	onPlane(t, func(p *plane) {
		p.down()
		r := p.start("a", p.config).rescue
		p.pass(time.Minute)
		began := r.noteAlerts()[0].ReceivedAt
		require.WithinDuration(t, time.Now().Add(-time.Minute), began, 5*time.Second)
		p.do(func() { // the clock is set back by an hour
			for fingerprint, h := range r.received {
				r.received[fingerprint] = alertTimes{h.first.Add(time.Hour), h.last.Add(time.Hour)}
			}
		})
		began = time.Now()
		p.pass(time.Minute)
		require.WithinDuration(t, began, r.noteAlerts()[0].ReceivedAt, 5*time.Second, "from then on its age counts")
		began = r.noteAlerts()[0].ReceivedAt
		p.do(func() { p.firing = false })
		p.pass(5 * time.Minute)
		require.Empty(t, r.noteAlerts())
		p.down()
		p.pass(time.Minute)
		require.Equal(t, began, r.noteAlerts()[0].ReceivedAt, "it was away for less than ten minutes")
		p.do(func() { p.firing = false })
		p.pass(15 * time.Minute)
		p.down()
		p.pass(time.Minute)
		require.WithinDuration(t, time.Now().Add(-time.Minute), r.noteAlerts()[0].ReceivedAt, 5*time.Second)
	})
}

// TestTwoReplicasExcludeEachOther: the commands on the hosts prevent that two replicas restart the
// same kubelet. Each kubelet is restarted once, by either replica.
func TestTwoReplicasExcludeEachOther(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		p.do(func() { p.hosts["cp-1"].cures, p.hosts["cp-2"].cures = false, false })
		a, b := p.start("a", p.config), p.start("b", p.config)
		p.pass(10 * time.Minute)
		a.kill()
		b.kill()
		require.Len(t, p.logs(), 3, "%v", p.logs())
		p.requireClaims(t, "a", "b")
	})
	require.Empty(t, p.bad)
}

// TestRescueThatDiesAtEveryStep: after a kill at any step, the rescue continues from its journal.
// No attempt is issued twice, nothing stays locked, and the control plane works again.
func TestRescueThatDiesAtEveryStep(t *testing.T) {
	t.Parallel()
	for at := 0; ; at += soak.Every() {
		died := false
		p := onPlane(t, func(p *plane) {
			p.down()
			p.do(func() { p.hosts["cp-1"].cures = false; p.dieAt = at })
			g := p.start("a", p.config)
			p.pass(4 * time.Minute)
			p.do(func() { died = g.dead })
			g.kill()
			p.start("a", p.config)
			p.pass(15 * time.Minute)
			p.guards[1].kill()
			up := false
			p.do(func() {
				for _, h := range p.hosts {
					up = up || h.up
				}
			})
			require.True(t, up, "killed at step %d", at)
			j := p.journal(t, "a")
			require.Nil(t, j.Rescue, "killed at step %d", at)
			require.Contains(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeSelfRecovered}, j.Ended[0].Outcome)
			p.requireClaims(t, "a")
		})
		require.Empty(t, p.bad, "killed at step %d", at)
		if !died {
			require.Greater(t, at, 50, "so many steps there are")
			return
		}
	}
}

// TestHistoriesAreWrittenWhenTheAPIIsBack: the history is written once on the Node of each host, if
// the Node exists.
func TestHistoriesAreWrittenWhenTheAPIIsBack(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		p.down()
		p.do(func() { p.hosts["cp-1"].cures, p.hosts["cp-2"].dead = false, true })
		g := p.start("a", p.config)
		p.pass(20 * time.Minute)
		p.do(func() { require.Empty(t, p.history) })
		p.do(func() { p.apiBack, p.firing = true, false })
		p.pass(5 * time.Minute)
		g.kill()
		p.start("a", p.config)
		p.pass(5 * time.Minute)
		p.guards[1].kill()
		j := p.journal(t, "a")
		require.Empty(t, j.MissingInHistory(j.Ended[0]))
	})
	require.Len(t, p.history["cp-1"], 1)
	require.Equal(t, string(remediations.KindAPIServer), p.history["cp-1"][0].Target)
	require.Contains(t, p.history["cp-2"][0].Why, "no route to host")
	require.Len(t, p.history, 2, "there is no Node cp-3")
	require.Empty(t, p.bad)
}

// TestJournalThatCannotBeReadHolds: it holds all restarts until a person requests a reset.
func TestJournalThatCannotBeReadHolds(t *testing.T) {
	p := onPlane(t, func(p *plane) {
		require.NoError(t, os.MkdirAll(filepath.Join(p.dir, "a"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, "a", statefile.Name), []byte("nonsense\n"), 0o600))
		p.down()
		g := p.start("a", p.config)
		p.pass(10 * time.Minute)
		require.Empty(t, p.logs())
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, "a", statefile.Reset), nil, 0o600))
		p.pass(3 * time.Minute)
		g.kill()
		require.Len(t, p.logs(), 1)
	})
	require.Empty(t, p.bad)
}

// TestWhateverHappensToTheControlPlane runs plane through random histories. plane checks the
// invariants at each restart.
func TestWhateverHappensToTheControlPlane(t *testing.T) {
	t.Parallel()
	calls, ends := 0, map[remediations.Outcome]int{}
	rapid.Check(t, func(rt *rapid.T) {
		p := onPlane(t, func(p *plane) {
			if rapid.IntRange(0, 5).Draw(rt, "observes") == 0 {
				p.config.Policies[0].Mode = remediations.ModeObserve
			}
			names := []string{"a", "b"}
			if rapid.Bool().Draw(rt, "all are down") {
				p.down()
			}
			running := map[string]*guard{"a": p.start("a", p.config)}
			host := func() *planeHost {
				return p.hosts[rapid.SampledFrom(p.config.ControlPlaneHosts).Draw(rt, "host")]
			}
			flip := func(b *bool) { *b = !*b }
			person := func(name, text string) {
				path := filepath.Join(p.dir, rapid.SampledFrom(names).Draw(rt, "where"), name)
				if os.Remove(path) != nil {
					_ = os.WriteFile(path, []byte(text), 0o600) // if there is such a directory now
				}
			}
			wait := func() {
				p.pass(rapid.SampledFrom([]time.Duration{50 * time.Millisecond, time.Second, 9 * time.Second, 31 * time.Second, time.Minute, 4 * time.Minute, time.Hour}).Draw(rt, "for"))
			}
			rt.Repeat(map[string]func(*rapid.T){
				"time passes": func(*rapid.T) { wait() }, "more time passes": func(*rapid.T) { wait() },
				"all go down":         func(*rapid.T) { p.down() },
				"one goes up or down": func(*rapid.T) { h := host(); p.do(func() { flip(&h.up) }) },
				"a host changes": func(rt *rapid.T) {
					h, what := host(), rapid.IntRange(0, 5).Draw(rt, "what")
					p.do(func() { flip([]*bool{&h.cures, &h.unknown, &h.dead, &h.lies, &h.cut, &h.stuck}[what]) })
				},
				"the alert changes": func(rt *rapid.T) {
					what := rapid.IntRange(0, 4).Draw(rt, "what")
					p.do(func() { flip([]*bool{&p.firing, &p.silenced, &p.inhibited, &p.deaf, &p.hangs}[what]) })
				},
				"a person pauses or goes on": func(*rapid.T) { person(statefile.Paused, "") },
				"a Drydock is killed or begun": func(rt *rapid.T) {
					name := rapid.SampledFrom(names).Draw(rt, "which")
					if g := running[name]; g != nil {
						g.kill()
						delete(running, name)
						return
					}
					running[name] = p.start(name, p.config)
				},
				"": func(rt *rapid.T) {
					p.mu.Lock()
					defer p.mu.Unlock()
					if p.bad != "" {
						rt.Fatal(p.bad)
					}
				},
			})
			// Then everything recovers but the API servers, and whatever was begun ends.
			p.do(func() { p.silenced, p.inhibited, p.deaf, p.hangs, p.firing = false, false, false, false, false })
			for _, name := range names {
				_ = os.Remove(filepath.Join(p.dir, name, statefile.Paused))
				if running[name] == nil {
					running[name] = p.start(name, p.config)
				}
			}
			p.pass(25 * time.Minute)
			for _, name := range names {
				running[name].kill()
				j := p.journal(rt, name)
				require.True(rt, j.Rescue == nil || j.Rescue.Phase == remediations.PhaseExhausted, "nothing stays under way for ever: %+v", j.Rescue)
				for _, e := range j.Ended {
					ends[e.Outcome]++
				}
			}
			for _, h := range p.hosts {
				h.lies = true // a host that ever lied may still have lied
			}
			p.requireClaims(rt, names...)
			calls += len(p.restarted)
		})
		if p.bad != "" {
			rt.Fatal(p.bad)
		}
	})
	t.Logf("%d restarts; ends: %v", calls, ends)
	require.True(t, calls > 0 || testing.Short())
}

// TestObservationsBeforeASleepAreForgotten: all of them are, and no observation from while the
// machine was awake.
func TestObservationsBeforeASleepAreForgotten(t *testing.T) {
	t.Parallel()
	then := time.Now()
	for name, c := range map[string]struct {
		awake, wall time.Duration
		forgets     bool
	}{
		"awake":                  {time.Minute, time.Minute, false},
		"suspended":              {time.Second, time.Hour, true},
		"its clock was set back": {time.Minute, -time.Hour, true},
	} {
		r := &Rescue{word: &alerts.Snapshot{AskedAt: then}, sights: map[string]apiserver.HostSight{"cp-1": {At: then}}, wellSince: then}
		r.forgetTorn(soak.Awake(then.Add(c.wall), c.awake-c.wall))
		for what, gone := range map[string]bool{"hosts": len(r.sights) == 0, "well hosts": r.wellSince.IsZero(), "word": r.word == nil} {
			require.Equal(t, c.forgets, gone, "%s: %s", name, what)
		}
	}
}
