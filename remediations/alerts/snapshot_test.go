package alerts_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestWhatTheAlertmanagersTogetherSay checks invariant 5. One replica that reports the alert
// active, and has the Watchdog, is enough. One replica that reports it silenced or inhibited holds
// the repair. A replica that does not answer is skipped. If no replica answers, the repair is held.
func TestWhatTheAlertmanagersTogetherSay(t *testing.T) {
	since := scene.Noon.Add(-time.Hour)
	var (
		dead       = alerts.Replica{URL: "http://a", Err: errors.New("refused")}
		active     = replica(alerts.Alert{Active: true, StartsAt: since})
		silenced   = replica(alerts.Alert{SilencedBy: []string{"s1"}})
		muted      = replica(alerts.Alert{MutedBy: []string{"nights"}})
		inhibited  = replica(alerts.Alert{InhibitedBy: []string{"i1"}})
		both       = replica(alerts.Alert{SilencedBy: []string{"s1"}, InhibitedBy: []string{"i1"}})
		unready    = replica(alerts.Alert{})
		absent     = alerts.Replica{URL: "http://a", Watchdog: true}
		unwatched  = func(r alerts.Replica) alerts.Replica { r.Watchdog = false; return r }
		none       remediations.Reason
		anyReplica = remediations.Config{Watchdog: true}
		all        = remediations.Config{Watchdog: true, RequireAll: true}
		noWatchdog = remediations.Config{}
	)
	for name, c := range map[string]struct {
		config   remediations.Config
		replicas []alerts.Replica
		want     remediations.Reason
		gone     bool
	}{
		"both say active":                                        {anyReplica, []alerts.Replica{active, active}, none, false},
		"one says active, the other is dead":                     {anyReplica, []alerts.Replica{dead, active}, none, false},
		"one says active, the other has not heard of it":         {anyReplica, []alerts.Replica{absent, active}, none, false},
		"one says active, the other has not processed it":        {anyReplica, []alerts.Replica{unready, active}, none, false},
		"both are dead":                                          {anyReplica, []alerts.Replica{dead, dead}, remediations.ReasonAlertUnconfirmed, false},
		"there is none at all":                                   {anyReplica, nil, remediations.ReasonAlertUnconfirmed, false},
		"one is dead and all are required":                       {all, []alerts.Replica{active, dead}, remediations.ReasonAlertUnconfirmed, false},
		"all are required and there":                             {all, []alerts.Replica{active, active}, none, false},
		"all are required, one dead, none has it: not even gone": {all, []alerts.Replica{absent, dead}, remediations.ReasonAlertUnconfirmed, false},
		"the confirming replica shows no Watchdog":               {anyReplica, []alerts.Replica{unwatched(active), absent}, remediations.ReasonBlind, false},
		"another confirms with a Watchdog":                       {anyReplica, []alerts.Replica{unwatched(active), active}, none, false},
		"the Watchdog is not asked for":                          {noWatchdog, []alerts.Replica{unwatched(active)}, none, false},
		"silenced on one of two":                                 {anyReplica, []alerts.Replica{active, silenced}, remediations.ReasonSilenced, false},
		"silenced on the one that shows no Watchdog":             {anyReplica, []alerts.Replica{active, unwatched(silenced)}, remediations.ReasonSilenced, false},
		"muted on one of two":                                    {anyReplica, []alerts.Replica{muted, active}, remediations.ReasonSilenced, false},
		"inhibited on one of two":                                {anyReplica, []alerts.Replica{active, inhibited}, remediations.ReasonInhibited, false},
		"silenced goes before inhibited":                         {anyReplica, []alerts.Replica{both}, remediations.ReasonSilenced, false},
		"not processed anywhere":                                 {anyReplica, []alerts.Replica{unready, absent}, remediations.ReasonAlertUnconfirmed, false},
		"nobody has it":                                          {anyReplica, []alerts.Replica{absent, absent}, remediations.ReasonAlertUnconfirmed, true},
		"nobody who answers has it":                              {anyReplica, []alerts.Replica{absent, dead}, remediations.ReasonAlertUnconfirmed, true},
		"nobody has it, one shows the Watchdog":                  {anyReplica, []alerts.Replica{absent, unwatched(absent)}, remediations.ReasonAlertUnconfirmed, true},
		"nobody has it, nobody shows the Watchdog: no data":      {anyReplica, []alerts.Replica{unwatched(absent), unwatched(absent)}, remediations.ReasonAlertUnconfirmed, false},
		"nobody has it, and no Watchdog is asked for":            {noWatchdog, []alerts.Replica{unwatched(absent)}, remediations.ReasonAlertUnconfirmed, true},
		"a silenced alert is not gone":                           {anyReplica, []alerts.Replica{silenced, absent}, remediations.ReasonSilenced, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := alerts.Snapshot{AskedAt: scene.Noon, Replicas: c.replicas}
			v := w.VerdictFor(scene.FP, &c.config, "")
			require.Equal(t, c.want, v.Reason, v.Message)
			require.Equal(t, c.gone, v.Gone)
			if c.want == none {
				require.Equal(t, since, v.StartsAt)
			} else {
				require.NotEmpty(t, v.Message)
			}
		})
	}
}

func replica(a alerts.Alert) alerts.Replica {
	return alerts.Replica{URL: "http://a", Watchdog: true, Alerts: map[string]alerts.Alert{scene.FP: a}}
}

func TestBlindness(t *testing.T) {
	asked := func(misses int, r ...alerts.Replica) *alerts.Snapshot {
		return &alerts.Snapshot{AskedAt: scene.Noon, WatchdogMisses: misses, Replicas: r}
	}
	alive, dead := alerts.Replica{Watchdog: true}, alerts.Replica{Err: errors.New("refused"), BlindBy: "X"}
	watched := &remediations.Config{Watchdog: true}
	down := alerts.Replica{Watchdog: true, SourceDown: true}
	seen := func(r alerts.Replica, ago time.Duration) alerts.Replica {
		r.SourceSeen = &alerts.Alert{UpdatedAt: scene.Noon.Add(-ago), EndsAt: scene.Noon.Add(4*time.Minute - ago)}
		return r
	}
	for name, c := range map[string]struct {
		config *remediations.Config
		word   *alerts.Snapshot
		blind  bool
	}{
		"nobody was asked":                           {watched, nil, true},
		"the word is empty":                          {watched, &alerts.Snapshot{}, true},
		"the Watchdog is there":                      {watched, asked(0, alive), false},
		"it was missed twice":                        {watched, asked(2, alive), false},
		"it was missed three times":                  {watched, asked(3, alive), true},
		"it was never seen":                          {watched, asked(-1, alive), true},
		"it is not asked for":                        {&remediations.Config{}, asked(-1, alive), false},
		"an alert of blindWhen is active on one":     {&remediations.Config{}, asked(0, alive, alerts.Replica{BlindBy: "X"}), true},
		"a replica without an answer says nothing":   {watched, asked(0, alive, dead), false},
		"a dead replica does not lend its blindWhen": {&remediations.Config{}, asked(0, dead), false},
		"no Prometheus sees the nodes":               {watched, asked(0, down, alive), true},
		"one of two Prometheus sees them":            {watched, asked(0, seen(down, time.Minute)), false},
		"it said so to another replica":              {watched, asked(0, down, seen(alive, time.Minute)), false},
		"it has missed two sendings":                 {watched, asked(0, seen(down, 3*time.Minute)), true},
		"it said so to a replica that is dead":       {watched, asked(0, down, seen(dead, time.Minute)), true},
		"an alert of somebody's own blinds whatever": {watched, asked(0, seen(alerts.Replica{Watchdog: true, BlindBy: "X"}, time.Minute)), true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.blind, c.word.BlindCause(c.config) != "", c.word.BlindCause(c.config))
		})
	}
}

// TestAlertThatIsNotSentAgainIsNotBelieved: the alerts of a Prometheus that has stopped stay active
// for minutes.
func TestAlertThatIsNotSentAgainIsNotBelieved(t *testing.T) {
	sent := func(updated, life time.Duration) alerts.Alert {
		a := alerts.Alert{Active: true, UpdatedAt: scene.Noon.Add(-updated)}
		a.EndsAt = a.UpdatedAt.Add(life)
		return a
	}
	for name, c := range map[string]struct {
		a    alerts.Alert
		want remediations.Reason
	}{
		"sent a moment ago":              {sent(time.Second, 4*time.Minute), ""},
		"one sending missed":             {sent(119*time.Second, 4*time.Minute), ""},
		"two sendings missed":            {sent(121*time.Second, 4*time.Minute), remediations.ReasonBlind},
		"nobody says when it was sent":   {alerts.Alert{Active: true, EndsAt: scene.Noon}, ""},
		"nobody says when it ends":       {alerts.Alert{Active: true, UpdatedAt: scene.Noon.Add(-time.Hour)}, ""},
		"it ended before it was sent":    {sent(time.Hour, -time.Minute), ""},
		"sent by a clock that is ahead":  {sent(-time.Hour, 4*time.Minute), ""},
		"a source that sends once a day": {sent(11*time.Hour, 24*time.Hour), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{replica(c.a)}}
			require.Equal(t, c.want, w.VerdictFor(scene.FP, &remediations.Config{Watchdog: true}, "").Reason)
		})
	}
	w := alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{replica(sent(time.Hour, 4*time.Minute)), replica(sent(0, 4*time.Minute))}}
	require.Empty(t, w.VerdictFor(scene.FP, &remediations.Config{Watchdog: true}, "").Reason, "one replica that hears of it is enough")
}

// TestEachClockOfAnAlertmanagerIsComparedWithItself: one replica whose clock is in the future must
// not hide that other replicas receive the Watchdog.
func TestEachClockOfAnAlertmanagerIsComparedWithItself(t *testing.T) {
	said := func(a, b time.Duration, year2099 bool) alerts.Heard {
		w := alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{
			{URL: "a", WatchdogAt: scene.Noon.Add(a)}, {URL: "b", WatchdogAt: scene.Noon.Add(b)}, {URL: "c", WatchdogAt: scene.Noon, Err: errors.New("refused")},
		}}
		if year2099 {
			w.Replicas[0].WatchdogAt = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		times, ahead := w.Heard()
		require.NotContains(t, times, "c", "it did not answer")
		require.Equal(t, year2099, len(ahead) == 1 && ahead[0] == "a")
		return times
	}
	then := said(-time.Minute, -time.Hour, false)
	require.False(t, said(-time.Minute, -time.Hour, false).Since(then))
	require.True(t, said(-time.Second, -time.Hour, false).Since(then))
	require.True(t, said(-time.Minute, -59*time.Minute, false).Since(then), "its clock is an hour behind, and it goes on")
	require.False(t, said(0, -time.Hour, true).Since(then), "a time that lies ahead says nothing")
	require.True(t, said(0, -59*time.Minute, true).Since(then))

	fresh := alerts.Heard{"new": scene.Noon}
	require.False(t, fresh.Since(then), "a replica that was not there then is compared with nothing")
	both := then.And(fresh)
	require.False(t, fresh.Since(both))
	require.True(t, alerts.Heard{"new": scene.Noon.Add(time.Second)}.Since(both))
	require.Equal(t, then["a"], then.And(alerts.Heard{"a": scene.Noon})["a"], "what is known stays")
}

// TestInhibitingAlertIsNamed: the message has its name if the replica reported its labels, and
// otherwise its fingerprint.
func TestInhibitingAlertIsNamed(t *testing.T) {
	r := replica(alerts.Alert{InhibitedBy: []string{"i1", "i2"}})
	r.Alerts["i1"] = alerts.Alert{Labels: map[string]string{"alertname": "ClusterDown"}, Active: true}
	w := &alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{r}}
	require.Equal(t, "inhibited by the alert ClusterDown (i1), i2", w.VerdictFor(scene.FP, &remediations.Config{}, "").Message)
}

// TestAnInhibitionByTheNodesOwnAlertIsReported: an inhibition by an alert about the same node mutes
// each alert about the node for as long as the node is ill. An alert about another node is the
// control.
func TestAnInhibitionByTheNodesOwnAlertIsReported(t *testing.T) {
	c := &remediations.Config{Policies: []*remediations.Policy{{Name: "p", Labels: []string{"node"}}}}
	for node, want := range map[string]string{"n1": "inhibited by the alert KubeNodeNotReady (i1) about the same node", "n2": "inhibited by the alert KubeNodeNotReady (i1)"} {
		r := replica(alerts.Alert{Labels: map[string]string{"node": "n1"}, InhibitedBy: []string{"i1"}})
		r.Alerts["i1"] = alerts.Alert{Labels: map[string]string{"alertname": "KubeNodeNotReady", "node": node}, Active: true}
		w := &alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{r}}
		require.Equal(t, want, w.VerdictFor(scene.FP, c, "").Message)
		w.Replicas[0].Inhibitors = map[string]map[string]string{"i1": r.Alerts["i1"].Labels}
		delete(r.Alerts, "i1")
		require.Equal(t, want, w.VerdictFor(scene.FP, c, "").Message, "no policy takes the alert that inhibits")
	}
}

// TestSilenceOfAnotherNodeHoldsNoRequest: only silences of the request's own node hold it.
func TestSilenceOfAnotherNodeHoldsNoRequest(t *testing.T) {
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "node-not-ready")
	require.NoError(t, err)
	c := &remediations.Config{Policies: []*remediations.Policy{{Name: "off", Mode: remediations.ModeOff, Labels: []string{"node"}}, {Name: "p", Mode: remediations.ModeEnforce, Match: labels.Matchers{m}, Labels: []string{"node"}}}}
	w := &alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{{Alerts: map[string]alerts.Alert{
		"a": {Labels: map[string]string{"remediation": "node-not-ready", "node": "n2"}, SilencedBy: []string{"s1"}},
		"b": {Labels: map[string]string{"remediation": "another", "node": "n1"}, SilencedBy: []string{"s2"}},
	}}}}
	require.Empty(t, w.VerdictForNode("n1", c, "").Reason)
	require.Equal(t, remediations.ReasonSilenced, w.VerdictForNode("n2", c, "").Reason)
	require.Empty(t, w.VerdictForNode("n2", c, "s1").Reason, "our own")
	c.ClusterLabel, c.ClusterValue = "cluster", "a"
	require.Empty(t, w.VerdictForNode("n2", c, "").Reason, "the alert is of another cluster, which has a node of that name")
	w.Replicas[0].Alerts["a"].Labels["cluster"] = "a"
	require.Equal(t, remediations.ReasonSilenced, w.VerdictForNode("n2", c, "").Reason, "the control")
}

// TestInhibitingAlertOfNoPolicyIsNamed: the replica showed it, although no policy takes it.
func TestInhibitingAlertOfNoPolicyIsNamed(t *testing.T) {
	r := replica(alerts.Alert{InhibitedBy: []string{"i1"}})
	r.Inhibitors = map[string]map[string]string{"i1": {"alertname": "ClusterDown"}}
	w := &alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{r}}
	require.Equal(t, "inhibited by the alert ClusterDown (i1)", w.VerdictFor(scene.FP, &remediations.Config{}, "").Message)
}
