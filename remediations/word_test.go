package remediations_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/scene"
)

// TestWhatTheAlertmanagersTogetherSay is invariant 5: one replica that says active, and shows the Watchdog, is enough;
// one that says silenced or inhibited holds; one that does not answer is passed over; none answering holds.
func TestWhatTheAlertmanagersTogetherSay(t *testing.T) {
	since := scene.Noon.Add(-time.Hour)
	var (
		dead       = ReplicaWord{URL: "http://a", Err: errors.New("refused")}
		active     = replica(AlertWord{Active: true, StartsAt: since})
		silenced   = replica(AlertWord{SilencedBy: []string{"s1"}})
		muted      = replica(AlertWord{MutedBy: []string{"nights"}})
		inhibited  = replica(AlertWord{InhibitedBy: []string{"i1"}})
		both       = replica(AlertWord{SilencedBy: []string{"s1"}, InhibitedBy: []string{"i1"}})
		unready    = replica(AlertWord{})
		absent     = ReplicaWord{URL: "http://a", Watchdog: true}
		unwatched  = func(r ReplicaWord) ReplicaWord { r.Watchdog = false; return r }
		none       Reason
		anyReplica = Config{Watchdog: true}
		all        = Config{Watchdog: true, RequireAll: true}
		noWatchdog = Config{}
	)
	for name, c := range map[string]struct {
		config   Config
		replicas []ReplicaWord
		want     Reason
		gone     bool
	}{
		"both say active":                                        {anyReplica, []ReplicaWord{active, active}, none, false},
		"one says active, the other is dead":                     {anyReplica, []ReplicaWord{dead, active}, none, false},
		"one says active, the other has not heard of it":         {anyReplica, []ReplicaWord{absent, active}, none, false},
		"one says active, the other has not processed it":        {anyReplica, []ReplicaWord{unready, active}, none, false},
		"both are dead":                                          {anyReplica, []ReplicaWord{dead, dead}, AlertUnconfirmed, false},
		"there is none at all":                                   {anyReplica, nil, AlertUnconfirmed, false},
		"one is dead and all are required":                       {all, []ReplicaWord{active, dead}, AlertUnconfirmed, false},
		"all are required and there":                             {all, []ReplicaWord{active, active}, none, false},
		"all are required, one dead, none has it: not even gone": {all, []ReplicaWord{absent, dead}, AlertUnconfirmed, false},
		"the confirming replica shows no Watchdog":               {anyReplica, []ReplicaWord{unwatched(active), absent}, Blind, false},
		"another confirms with a Watchdog":                       {anyReplica, []ReplicaWord{unwatched(active), active}, none, false},
		"the Watchdog is not asked for":                          {noWatchdog, []ReplicaWord{unwatched(active)}, none, false},
		"silenced on one of two":                                 {anyReplica, []ReplicaWord{active, silenced}, Silenced, false},
		"silenced on the one that shows no Watchdog":             {anyReplica, []ReplicaWord{active, unwatched(silenced)}, Silenced, false},
		"muted on one of two":                                    {anyReplica, []ReplicaWord{muted, active}, Silenced, false},
		"inhibited on one of two":                                {anyReplica, []ReplicaWord{active, inhibited}, Inhibited, false},
		"silenced goes before inhibited":                         {anyReplica, []ReplicaWord{both}, Silenced, false},
		"not processed anywhere":                                 {anyReplica, []ReplicaWord{unready, absent}, AlertUnconfirmed, false},
		"nobody has it":                                          {anyReplica, []ReplicaWord{absent, absent}, AlertUnconfirmed, true},
		"nobody who answers has it":                              {anyReplica, []ReplicaWord{absent, dead}, AlertUnconfirmed, true},
		"nobody has it, one shows the Watchdog":                  {anyReplica, []ReplicaWord{absent, unwatched(absent)}, AlertUnconfirmed, true},
		"nobody has it, nobody shows the Watchdog: no data":      {anyReplica, []ReplicaWord{unwatched(absent), unwatched(absent)}, AlertUnconfirmed, false},
		"nobody has it, and no Watchdog is asked for":            {noWatchdog, []ReplicaWord{unwatched(absent)}, AlertUnconfirmed, true},
		"a silenced alert is not gone":                           {anyReplica, []ReplicaWord{silenced, absent}, Silenced, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := Word{AskedAt: scene.Noon, Replicas: c.replicas}
			v := w.About(scene.FP, &c.config, "")
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

func replica(a AlertWord) ReplicaWord {
	return ReplicaWord{URL: "http://a", Watchdog: true, Alerts: map[string]AlertWord{scene.FP: a}}
}

func TestBlindness(t *testing.T) {
	asked := func(misses int, r ...ReplicaWord) *Word {
		return &Word{AskedAt: scene.Noon, WatchdogMisses: misses, Replicas: r}
	}
	alive, dead := ReplicaWord{Watchdog: true}, ReplicaWord{Err: errors.New("refused"), BlindBy: "X"}
	watched := &Config{Watchdog: true}
	for name, c := range map[string]struct {
		config *Config
		word   *Word
		blind  bool
	}{
		"nobody was asked":                           {watched, nil, true},
		"the word is empty":                          {watched, &Word{}, true},
		"the Watchdog is there":                      {watched, asked(0, alive), false},
		"it was missed twice":                        {watched, asked(2, alive), false},
		"it was missed three times":                  {watched, asked(3, alive), true},
		"it was never seen":                          {watched, asked(-1, alive), true},
		"it is not asked for":                        {&Config{}, asked(-1, alive), false},
		"an alert of blindWhen is active on one":     {&Config{}, asked(0, alive, ReplicaWord{BlindBy: "X"}), true},
		"a replica without an answer says nothing":   {watched, asked(0, alive, dead), false},
		"a dead replica does not lend its blindWhen": {&Config{}, asked(0, dead), false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.blind, c.word.BlindCause(c.config) != "", c.word.BlindCause(c.config))
		})
	}
}

// TestAlertThatIsNotSentAgainIsNotBelieved: a source that died leaves its alerts active for minutes.
func TestAlertThatIsNotSentAgainIsNotBelieved(t *testing.T) {
	sent := func(updated, life time.Duration) AlertWord {
		a := AlertWord{Active: true, UpdatedAt: scene.Noon.Add(-updated)}
		a.EndsAt = a.UpdatedAt.Add(life)
		return a
	}
	for name, c := range map[string]struct {
		a    AlertWord
		want Reason
	}{
		"sent a moment ago":              {sent(time.Second, 4*time.Minute), ""},
		"one sending missed":             {sent(119*time.Second, 4*time.Minute), ""},
		"two sendings missed":            {sent(121*time.Second, 4*time.Minute), Blind},
		"nobody says when it was sent":   {AlertWord{Active: true, EndsAt: scene.Noon}, ""},
		"nobody says when it ends":       {AlertWord{Active: true, UpdatedAt: scene.Noon.Add(-time.Hour)}, ""},
		"it ended before it was sent":    {sent(time.Hour, -time.Minute), ""},
		"sent by a clock that is ahead":  {sent(-time.Hour, 4*time.Minute), ""},
		"a source that sends once a day": {sent(11*time.Hour, 24*time.Hour), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := Word{AskedAt: scene.Noon, Replicas: []ReplicaWord{replica(c.a)}}
			require.Equal(t, c.want, w.About(scene.FP, &Config{Watchdog: true}, "").Reason)
		})
	}
	w := Word{AskedAt: scene.Noon, Replicas: []ReplicaWord{replica(sent(time.Hour, 4*time.Minute)), replica(sent(0, 4*time.Minute))}}
	require.Empty(t, w.About(scene.FP, &Config{Watchdog: true}, "").Reason, "one replica that hears of it is enough")
}

func TestWatchdogWasHeardByTheReplicaThatHeardItLast(t *testing.T) {
	w := Word{Replicas: []ReplicaWord{{WatchdogAt: scene.Noon}, {WatchdogAt: scene.Noon.Add(time.Second)}, {WatchdogAt: scene.Noon.Add(time.Hour), Err: errors.New("refused")}}}
	require.Equal(t, scene.Noon.Add(time.Second), w.HeardAt())
	require.Zero(t, (&Word{}).HeardAt())
}

// TestInhibitingAlertIsNamed: by its name where the replica told us of it.
func TestInhibitingAlertIsNamed(t *testing.T) {
	r := replica(AlertWord{InhibitedBy: []string{"i1", "i2"}})
	r.Alerts["i1"] = AlertWord{Labels: map[string]string{"alertname": "ClusterDown"}, Active: true}
	w := &Word{AskedAt: scene.Noon, Replicas: []ReplicaWord{r}}
	require.Equal(t, "inhibited by the alert ClusterDown (i1), i2", w.About(scene.FP, &Config{}, "").Message)
}

// TestSilenceOfAnotherNodeHoldsNoRequest: a request is held by what is said of its own node.
func TestSilenceOfAnotherNodeHoldsNoRequest(t *testing.T) {
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "node-not-ready")
	require.NoError(t, err)
	c := &Config{Policies: []*Policy{{Name: "off", Mode: ModeOff, Labels: []string{"node"}}, {Name: "p", Mode: ModeEnforce, Match: labels.Matchers{m}, Labels: []string{"node"}}}}
	w := &Word{AskedAt: scene.Noon, Replicas: []ReplicaWord{{Alerts: map[string]AlertWord{
		"a": {Labels: map[string]string{"remediation": "node-not-ready", "node": "n2"}, SilencedBy: []string{"s1"}},
		"b": {Labels: map[string]string{"remediation": "another", "node": "n1"}, SilencedBy: []string{"s2"}},
	}}}}
	require.Empty(t, w.AboutNode("n1", c, "").Reason)
	require.Equal(t, Silenced, w.AboutNode("n2", c, "").Reason)
	require.Empty(t, w.AboutNode("n2", c, "s1").Reason, "our own")
}

// TestInhibitingAlertOfNoPolicyIsNamed: the replica showed it, though no policy wants it.
func TestInhibitingAlertOfNoPolicyIsNamed(t *testing.T) {
	r := replica(AlertWord{InhibitedBy: []string{"i1"}})
	r.Inhibitors = map[string]string{"i1": "ClusterDown"}
	w := &Word{AskedAt: scene.Noon, Replicas: []ReplicaWord{r}}
	require.Equal(t, "inhibited by the alert ClusterDown (i1)", w.About(scene.FP, &Config{}, "").Message)
}
