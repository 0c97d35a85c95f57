package rescue

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/rescue/apiserver"
	"drydock.dev/drydock/remediations/rescue/statefile"
)

// rescueKnockOut is one clause of a rescue's invariants, and how to disable it. With the clause
// nothing forbidden happens in the scenario. Without the clause the check of plane must fail.
type rescueKnockOut struct {
	take     func(p *plane)
	scenario func(p *plane)
	speaks   string
}

// sees makes apiserver.Decide see another state than the real one.
func sees(change func(*apiserver.State, time.Time)) func(*plane) {
	return func(p *plane) {
		p.core.decide = func(s *apiserver.State, now time.Time) apiserver.Decision {
			c := *s
			if c.Journal.Rescue != nil {
				r := *c.Journal.Rescue
				r.Hosts = slices.Clone(r.Hosts)
				c.Journal.Rescue = &r
			}
			change(&c, now)
			return apiserver.Decide(&c, now)
		}
	}
}

// seesHosts makes hosts in that state look like failing hosts.
func seesHosts(state apiserver.HostState) func(*plane) {
	return sees(func(s *apiserver.State, _ time.Time) {
		sights := map[string]apiserver.HostSight{}
		for name, sight := range s.Sights {
			if sight.State == state {
				sight.State = apiserver.HostFailing
			}
			sights[name] = sight
		}
		s.Sights = sights
	})
}

// said is a scenario: the alert changes after the first restart has not helped.
func said(then func(p *plane)) func(*plane) {
	return func(p *plane) {
		p.down()
		p.do(func() { p.hosts["cp-1"].cures = false })
		p.start("a", p.config)
		p.pass(20 * time.Second)
		p.do(func() { then(p) })
		p.pass(5 * time.Minute)
	}
}

// believes makes Decide see the alert as it was at the last confirmation.
func believes() func(*plane) {
	var good *alerts.Snapshot
	return sees(func(s *apiserver.State, now time.Time) {
		if s.Snapshot == nil {
			return
		}
		for _, r := range s.Snapshot.Replicas {
			for _, a := range r.Alerts {
				if a.Active {
					good = s.Snapshot
				}
			}
		}
		if good != nil {
			w := *good
			w.AskedAt = now
			s.Snapshot = &w
		}
	})
}

func rescueKnockOuts() map[string]rescueKnockOut {
	pause := func(p *plane) { _ = os.WriteFile(filepath.Join(p.dir, "a", statefile.Paused), nil, 0o600) }
	return map[string]rescueKnockOut{
		"1: observe mode": {
			take: sees(func(s *apiserver.State, _ time.Time) {
				c, policy := *s.Config, *s.Config.Policies[0]
				policy.Mode = remediations.ModeEnforce
				c.Policies = []*remediations.Policy{&policy}
				s.Config = &c
			}),
			scenario: func(p *plane) {
				p.config.Policies[0].Mode = remediations.ModeObserve
				p.down()
				p.start("a", p.config)
				p.pass(time.Minute)
			},
			speaks: "1:",
		},
		"3: repairs of a host are counted": {
			take: sees(func(s *apiserver.State, _ time.Time) { s.Journal.Ended = nil }),
			scenario: func(p *plane) {
				p.config.ControlPlaneHosts = []string{"cp-1"}
				p.start("a", p.config)
				for range 5 {
					p.down()
					p.pass(20 * time.Minute)
				}
			},
			speaks: "3:",
		},
		"4: an intent without an outcome counts as issued": {
			take: sees(func(s *apiserver.State, _ time.Time) {
				if r := s.Journal.Rescue; r != nil && r.Phase == remediations.PhaseActing && s.Call == nil {
					r.Phase, r.Hosts, r.Issued = remediations.PhasePending, r.Hosts[:len(r.Hosts)-1], r.Issued-1
				}
			}),
			scenario: func(p *plane) {
				p.down()
				p.do(func() { p.hosts["cp-1"].cures, p.hosts["cp-1"].cut = false, true })
				g := p.start("a", p.config)
				for len(p.logs()) == 0 {
					p.pass(10 * time.Millisecond)
				}
				p.do(func() { p.hosts["cp-1"].busyUntil = time.Time{} })
				// It died before it had the answer: the last line that it wrote is lost.
				g.kill()
				path := filepath.Join(p.dir, "a", statefile.Name)
				text, _ := os.ReadFile(path)
				lines := strings.SplitAfter(string(text), "\n")
				for !strings.Contains(lines[len(lines)-1], `"Acting"`) {
					lines = lines[:len(lines)-1]
				}
				_ = os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600)
				p.start("a", p.config)
				p.pass(5 * time.Minute)
			},
			speaks: "4: the attempt",
		},
		"4: an intent grows old": {
			take: func(p *plane) { p.core.intentGood = time.Hour },
			scenario: func(p *plane) {
				p.down()
				p.hosts["cp-1"].far = 20 * time.Second
				p.start("a", p.config)
				p.pass(2 * time.Minute)
			},
			speaks: "4: the intent is",
		},
		"5: Alertmanager must answer": {take: believes(), scenario: said(func(p *plane) { p.deaf = true }), speaks: "5:"},
		"5: a silence holds":          {take: believes(), scenario: said(func(p *plane) { p.silenced = true }), speaks: "5:"},
		"5: an inhibition holds":      {take: believes(), scenario: said(func(p *plane) { p.inhibited = true }), speaks: "5:"},
		"5: an alert that is over":    {take: believes(), scenario: said(func(p *plane) { p.firing = false }), speaks: "5:"},
		"6: unknown is never failing": {
			take: seesHosts(apiserver.HostUnknown),
			scenario: func(p *plane) {
				p.down()
				p.hosts["cp-1"].unknown = true
				p.start("a", p.config)
				p.pass(2 * time.Minute)
			},
			speaks: "6:",
		},
		"one that works ends it": {
			take:     seesHosts(apiserver.HostReady),
			scenario: func(p *plane) { p.down(); p.hosts["cp-2"].up = true; p.start("a", p.config); p.pass(2 * time.Minute) },
			speaks:   "cp-1 is restarted while the API server of cp-2",
		},
		"each host once": {
			take: sees(func(s *apiserver.State, _ time.Time) {
				if r := s.Journal.Rescue; r != nil && r.Phase != remediations.PhaseActing {
					for i := range r.Hosts {
						r.Hosts[i].Host = "forgotten"
					}
				}
			}),
			scenario: func(p *plane) {
				p.down()
				p.do(func() { p.hosts["cp-1"].cures = false })
				p.start("a", p.config)
				p.pass(3 * time.Minute)
			},
			speaks: "each host once",
		},
		"9: a pause holds": {
			take: func(p *plane) {
				sees(func(s *apiserver.State, _ time.Time) { s.Journal.Paused = nil })(p)
				p.core.mayStill = func(apiserver.RescueJournal, string, time.Time) error { return nil }
			},
			scenario: said(pause), speaks: "9:",
		},
		"9: a pause in the last moment": {
			take: func(p *plane) {
				p.core.mayStill = func(apiserver.RescueJournal, string, time.Time) error { return nil }
			},
			scenario: func(p *plane) {
				p.down()
				p.hosts["cp-1"].far = 3 * time.Second
				p.start("a", p.config)
				p.pass(2 * time.Second)
				p.do(func() { pause(p) })
				p.pass(time.Minute)
			},
			speaks: "9:",
		},
	}
}

// TestEachClauseOfARescueIsNeeded disables each clause, one by one, and requires that the check
// then fails. The check must not fail if no clause is disabled.
func TestEachClauseOfARescueIsNeeded(t *testing.T) {
	for name, k := range rescueKnockOuts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, onPlane(t, k.scenario).bad, "the control")
			bad := onPlane(t, func(p *plane) { k.take(p); k.scenario(p) }).bad
			require.True(t, strings.HasPrefix(bad, k.speaks), "without the clause the check must say %q, it says %q", k.speaks, bad)
		})
	}
}
