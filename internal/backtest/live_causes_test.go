package backtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// A cause is tried in the hours after midnight, with no windows.
func hours(hour, minute int) time.Time { return at(hour, minute).Add(7 * time.Second) }

// oneFault is a node that is not Ready for an hour.
func oneFault(l *live) { l.ill("n01", corev1.ConditionUnknown, hours(1, 0), hours(2, 0)) }

// known is one of the causes that the report prints, with hours that have it and hours that do not.
type known struct {
	// said is how the report's sentence begins.
	said string
	// was, is: what the configuration has in place of that of a day.
	was, is string
	// happens is all that happens; with: the cause is there.
	happens func(l *live, with bool)
	// live is how the live world is otherwise.
	live func(l *live, o *engine.Options, with bool)
}

const (
	byReady      = "witness: [{ready: false}]"
	rebootsTwice = "plan: [{step: reboot, wait: 10m, attempts: 2}]"
)

var knownCauses = map[string]known{
	"a policy observes": {
		said: "Policies that observe are replayed as if they enforced.",
		live: func(l *live, o *engine.Options, with bool) {
			if with {
				c, _, err := config.Read(strings.NewReader(calm), config.Options{SkipFiles: true})
				require.NoError(l.t, err)
				o.Config, l.config, l.intake.Config = c.Core, c.Core, c.Core
			}
		},
	},
	"a call is refused": {
		said: "As it went: each call is accepted and does nothing.",
		live: func(l *live, _ *engine.Options, with bool) { l.refuses = with },
	},
	"a drain takes longer": {
		said: "A drain takes 2m0s in both answers.", was: rebootsTwice, is: "repairCordoned: true\n  plan: [{step: drain}, {step: reboot, wait: 10m}]",
		// It ends before the plan does: whose cordon a drained node then has, the record does not say.
		happens: func(l *live, _ bool) { l.ill("n01", corev1.ConditionUnknown, hours(1, 0), hours(1, 18)) },
		live: func(l *live, o *engine.Options, with bool) {
			o.Workers = map[string]engine.Worker{"drain": l}
			if l.drains = 2 * time.Minute; with {
				l.drains = 7 * time.Minute
			}
		},
	},
	"a lease is stale although the node is Ready": {
		said: "A node's lease is renewed as long as its Ready condition is not Unknown.", was: byReady, is: "witness: [{lease: stale}]",
		happens: func(l *live, with bool) {
			if !with {
				oneFault(l)
				return
			}
			l.at(hours(1, 0), func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.silent["n01"] = time.Now()
			})
			l.at(hours(1, 5), func() { l.alert("n01") })
			l.at(hours(2, 0), func() {
				l.mu.Lock()
				delete(l.silent, "n01")
				l.mu.Unlock()
				l.alertEnds("n01")
			})
		},
	},
	"the provider refuses a step": {
		said: "The provider refuses no step.",
		live: func(l *live, o *engine.Options, with bool) {
			o.Actuators["civo"]["reboot"] = surveyed{l}
			if with {
				l.trouble = "the instance is not there"
			}
		},
	},
	"the Alertmanagers do not answer": {
		said: "Alertmanager answers each request, and the Watchdog is never late.",
		happens: func(l *live, with bool) {
			if oneFault(l); with {
				l.turn(l.unanswered, "", hours(0, 50), hours(2, 10))
			}
		},
	},
	"a silence": {
		said: "The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.",
		happens: func(l *live, with bool) {
			if oneFault(l); with {
				l.silence("n01", hours(0, 50), hours(2, 10))
			}
		},
	},
	"a pause": {
		said: "The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.",
		happens: func(l *live, with bool) {
			if oneFault(l); with {
				l.at(hours(0, 50), func() {
					l.edit("n01", func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true a disk is swapped" })
				})
			}
		},
	},
	"a request": {
		said: "The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.",
		happens: func(l *live, with bool) {
			if with {
				l.at(hours(3, 0), func() {
					l.edit("n02", func(n *corev1.Node) { n.Annotations[remediations.RequestKey] = "remediation/reboot" })
				})
			}
		},
	},
	"break-glass": {
		said: "The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.",
		happens: func(l *live, with bool) {
			if oneFault(l); with {
				l.at(hours(0, 50), func() {
					l.edit("n01", func(n *corev1.Node) { n.Annotations[remediations.BreakGlassKey] = "the console is open" })
				})
			}
		},
	},
	"an approval": {
		said: "The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.", was: "  for: 2m", is: "  for: 2m\n  approval: true",
		happens: func(l *live, with bool) {
			if oneFault(l); with {
				l.at(hours(1, 20), func() {
					r := l.config.Registry.ReadJournal(l.node("n01")).Record
					l.edit("n01", func(n *corev1.Node) { n.Annotations[remediations.ApproveKey] = r.ID })
				})
			}
		},
	},
	"Drydock cordons what ran out of steps": {
		said: "A cordon in the record counts as a person's cordon, also if Drydock set it.", was: "onExhausted: none", is: "onExhausted: cordon",
		live: func(l *live, o *engine.Options, with bool) {
			if !with {
				o.Config = optionsOf(l.t, calm).Config
			}
		},
	},
	"a reboot cures": {
		said: bootless,
		happens: func(l *live, with bool) {
			if with {
				l.cures("n17", hours(0, 50), hours(2, 0))
			}
			l.ill("n17", corev1.ConditionUnknown, hours(1, 0), hours(1, 50))
			l.ill("n18", corev1.ConditionFalse, hours(1, 0), hours(1, 40))
		},
	},
	"a storm": {
		said: "A breaker records to the minute when the fleet became calm, so a call after that may come a minute sooner or later.",
		was:  byReady, is: "witness: none", // what the witness denies does not count, and Ready is in the record to the second
		happens: func(l *live, with bool) {
			for _, name := range []string{"n05", "n06", "n07", "n08", "n09", "n10", "n11", "n12"} {
				if with {
					l.ill(name, corev1.ConditionFalse, hours(1, 0), hours(1, 30))
				}
			}
			l.ill("n14", corev1.ConditionUnknown, hours(1, 10), hours(2, 10))
		},
	},
	"writes take long": {
		said: "Reads, writes and calls take no time. Live, decisions come later by the time that these take.",
		live: func(l *live, _ *engine.Options, with bool) {
			if with {
				l.takes = 20 * time.Second
			}
		},
	},
	"nobody resets what ran out of steps": {
		said: "An exhausted repair is reset when the last alert of its node has ended, as if the person who fixed the node had done it.",
		happens: func(l *live, with bool) {
			l.noReset = with
			oneFault(l)
			l.ill("n01", corev1.ConditionUnknown, hours(3, 0), hours(4, 0))
		},
	},
	"the pod of a witness is well": {
		said: "Policy node-not-ready: the pod of its witness counts as unhealthy while an alert fires on its node.",
		was:  byReady, is: "witness: [{daemonSetPod: {namespace: kube-system, name: kube-proxy}}]",
		live: witnessed(signs.DaemonSetPod, signs.Ill, signs.Well),
	},
	"GPUs are missing": {
		said: "Policy gpu-node-not-ready: the GPUs that a node offers are not in the record. So this sign of its witness shows nothing.",
		was:  "policies:", is: "policies:\n- {name: gpu-node-not-ready, witness: [{gpus: missing}]}",
		happens: func(l *live, with bool) {
			l.edit("n01", func(n *corev1.Node) {
				n.Labels[signs.GPUCountLabel] = "8"
				n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
				if with {
					n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("7")}
				}
			})
			oneFault(l)
		},
	},
	"the provider says that an instance does not run": {
		said: "Policy node-not-ready: the provider's state of an instance is not in the record. So this sign of its witness shows nothing.",
		was:  byReady, is: "witness: [{provider: notRunning}]",
		live: witnessed(signs.NotRunning, signs.Unknown, signs.Ill),
	},
}

func withoutWindows(c string) string { return strings.Replace(c, "windows:", "# windows:", 1) }

// calm has no windows, and cordons nothing: a cordon of Drydock's own is a cause.
var calm = strings.Replace(withoutWindows(dayConfig), "onExhausted: cordon", "onExhausted: none", 1)

// TestEachNamedCauseMakesADifference between what was lived and what is replayed, and without it
// there is none.
func TestEachNamedCauseMakesADifference(t *testing.T) {
	t.Parallel()
	for name, k := range knownCauses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, calm, k.was)
			o := optionsOf(t, strings.Replace(calm, k.was, k.is, 1))
			require.True(t, slices.ContainsFunc(assumptions(o), func(said string) bool { return strings.HasPrefix(said, k.said) }), "the report says it")
			until := at(5, 0)
			for _, with := range []bool{true, false} {
				happens := oneFault
				if k.happens != nil {
					happens = func(l *live) { k.happens(l, with) }
				}
				l := lived(t, o, until, happens, func(l *live, o *engine.Options) {
					if k.live != nil {
						k.live(l, o, with)
					}
				})
				calls, holds := replayed(t, o, l.recorded.moments(), until)
				explained, unexplained := l.differences(calls, holds, until)
				found := append(explained, unexplained...)
				t.Logf("with the cause: %t; %d calls live, %d replayed\n%s", with, len(l.calls), len(calls), strings.Join(found, "\n"))
				require.Equal(t, with, len(found) > 0)
			}
		})
	}
}

// TestASignThatIsNotRecordedIsNotGuessed: a repair that needs it is held, and the report says that.
// Another sign may show that the node is ill.
func TestASignThatIsNotRecordedIsNotGuessed(t *testing.T) {
	t.Parallel()
	p := past{}
	for i := range 10 {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
	}
	p.ill("n03", at(1, 0), at(3, 0))
	for _, sign := range []string{"{gpus: missing}", "{provider: notRunning}"} {
		for also, acted := range map[string]int{"": 0, ", {ready: false}": 1} {
			o := optionsOf(t, strings.Replace(calm, byReady, "witness: ["+sign+also+"]", 1))
			found, err := Backtest(t.Context(), given(p.moments()), midnight, at(5, 0), Named{Name: "calm", Options: o})
			require.NoError(t, err)
			for _, run := range found.Runs {
				require.Equal(t, acted, run.Totals.Acted, sign+also)
				held := slices.ContainsFunc(run.Holds, func(h Held) bool {
					return h.Reason == remediations.ReasonNotWitnessed && h.Longest > Seconds(time.Hour)
				})
				require.Equal(t, acted == 0, held, sign+also)
			}
			require.True(t, slices.ContainsFunc(found.Assumptions, func(said string) bool {
				return strings.HasPrefix(said, "Policy node-not-ready: ") && strings.HasSuffix(said, "A repair that needs it is held as NotWitnessed.")
			}), found.Assumptions)
		}
	}
}

// TestEachSentenceIsACauseOrADefinition: what the report says that it rests on is tried above, or
// says only what a word means.
func TestEachSentenceIsACauseOrADefinition(t *testing.T) {
	t.Parallel()
	definitions := []string{"As if cured: ", "A repair is unnecessary if ", "Each difference from the past has consequences: "}
	const all = "witness: [{gpus: missing}, {provider: notRunning}, {daemonSetPod: {namespace: kube-system, name: kube-proxy}}]"
	o := optionsOf(t, strings.Replace(dayConfig, byReady, all, 1))
	ofAnyPolicy := regexp.MustCompile(`^Policy [a-z-]+: `)
	for _, said := range assumptions(o) {
		begins := func(sentence string) bool {
			return strings.HasPrefix(ofAnyPolicy.ReplaceAllString(said, ""), ofAnyPolicy.ReplaceAllString(sentence, ""))
		}
		tried := slices.ContainsFunc(definitions, begins)
		for _, k := range knownCauses {
			tried = tried || begins(k.said)
		}
		require.True(t, tried, said)
	}
}

// witnessed has the witness of that kind say another thing where the cause is there.
func witnessed(kind signs.Kind, without, with signs.Answer) func(*live, *engine.Options, bool) {
	return func(l *live, o *engine.Options, there bool) {
		o.Witnesses = map[signs.Kind]engine.Witness{kind: l}
		if l.says = without; there {
			l.says = with
		}
	}
}
