package alertmanager

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// TestAReplicasAnswerInTheCoresTerms: the alerts.Replica has everything that a decision uses, and
// only an alert in the state active is active.
func TestAReplicasAnswerInTheCoresTerms(t *testing.T) {
	named := func(name string) map[string]string { return map[string]string{"alertname": name} }
	muted := inhibited(silenced(shown("suppressed", node("n1")), silenceID(1)), keyOf(named("Big")), keyOf(node("n0")))
	inGroup := shown("suppressed", node("n1"))
	url := parts(t, list(t,
		shown("active", named("Watchdog")),
		shown("active", named("DrydockSourceDown")),
		shown("active", named("Other")),
		shown("active", named("SourceSeen")),
		shown("active", named("Big")),
		to(shown("active", named("DrydockSelfTest")), "pager"),
		shown("active", node("n0")),
		muted,
	), map[string]http.HandlerFunc{
		"GET /alerts/groups": jsonly(groups(t, group("drydock", []string{"night"}, inGroup))),
		"GET /silence/{id}":  jsonly(details(t, silenceID(1), "ann", "why")),
		"GET /receivers":     receiversNamed(t, "x/drydock", "pager"),
	})
	r := only(t, Options{
		URLs: []string{url}, Receiver: "drydock", Watchdog: `alertname="Watchdog"`, BlindWhen: []string{`alertname=~"DrydockSourceDown|Other"`},
		SourceSeen: `alertname="SourceSeen"`, SelfTest: isSelfTest, Keep: func(l map[string]string) bool { return l["node"] != "" },
		NodeLabels: []string{"node"},
	})
	received, end := began.Add(time.Minute), began.Add(time.Hour)
	require.Equal(t, alerts.Replica{
		URL: url, Watchdog: true, WatchdogAt: received, BlindBy: "Other", SourceDown: true, SourceSeen: &alerts.Alert{UpdatedAt: received, EndsAt: end},
		Inhibitors: map[string]map[string]string{keyOf(named("Big")): named("Big"), keyOf(node("n0")): {"alertname": "NodeNotReady", "node": "n0"}},
		Alerts: map[string]alerts.Alert{
			keyOf(node("n0")): {
				Labels: node("n0"), StartsAt: began, EndsAt: end, UpdatedAt: received, Active: true,
				SilencedBy: []string{}, InhibitedBy: []string{}, Receivers: []string{"drydock"},
			},
			keyOf(node("n1")): {
				Labels: node("n1"), StartsAt: began, EndsAt: end, UpdatedAt: received,
				SilencedBy: []string{silenceID(1)}, InhibitedBy: []string{keyOf(named("Big")), keyOf(node("n0"))}, MutedBy: []string{"night"}, Receivers: []string{"drydock"},
			},
		},
		SelfTest: []alerts.Alert{{
			Labels: named("DrydockSelfTest"), StartsAt: began, EndsAt: end, UpdatedAt: received, Active: true,
			SilencedBy: []string{}, InhibitedBy: []string{}, Receivers: []string{"pager"},
		}},
		NoReceiver: true, Akin: []string{"x/drydock"},
		Silences: map[string]alerts.Silence{silenceID(1): {Author: "ann", Comment: "why", EndsAt: began.Add(2 * time.Hour)}},
	}, r)
}

// TestAnInhibitionByAnAlertOfNoPolicyNamesItsNode: the answer has the inhibiting alert, although no
// policy takes it.
func TestAnInhibitionByAnAlertOfNoPolicyNamesItsNode(t *testing.T) {
	c := &remediations.Config{Policies: []*remediations.Policy{{Name: "p", Labels: []string{"instance"}}, {Name: "q", Labels: []string{"node"}}}}
	for name, say := range map[string]struct {
		by   map[string]string
		want string
	}{
		"the same node": {map[string]string{"alertname": "KubeNodeNotReady", "node": "n3"}, " about the same node"},
		"another node":  {map[string]string{"alertname": "KubeNodeNotReady", "node": "n4"}, ""},
		"another label": {map[string]string{"alertname": "KubeNodeNotReady", "instance": "n3"}, ""},
		"no node":       {map[string]string{"alertname": "ClusterDown"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, Options{
				URLs:       []string{replies(t, inhibited(shown("suppressed", node("n3")), keyOf(say.by)), shown(stateActive, say.by))},
				Keep:       func(labels map[string]string) bool { return labels["remediation"] != "" },
				NodeLabels: c.NodeLabels(),
			})
			for _, poll := range []string{"first", "second, from what is known"} {
				w := &alerts.Snapshot{AskedAt: began, Replicas: client.Look(t.Context())}
				require.NotContains(t, w.Replicas[0].Alerts, keyOf(say.by), poll)
				require.Equal(t, fmt.Sprintf("inhibited by the alert %s (%s)%s", say.by["alertname"], keyOf(say.by), say.want), w.VerdictFor(keyOf(node("n3")), c, "").Message, poll)
			}
		})
	}
}
