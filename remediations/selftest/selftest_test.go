package selftest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// look is one poll of the Alertmanagers, with the last arrival of the alert before it.
type look struct {
	replicas []alerts.Replica
	arrival  time.Time
	posts    Posts
}

func selfTestConfig(t testing.TB) *remediations.Config {
	m, err := labels.NewMatcher(labels.MatchEqual, "alertname", "DrydockSelfTest")
	require.NoError(t, err)
	return &remediations.Config{SelfTest: labels.Matchers{m}, Receiver: "drydock"}
}

func shows(firing ...alerts.Alert) alerts.Replica {
	return alerts.Replica{URL: "http://a", SelfTest: firing}
}

var (
	noReply  = alerts.Replica{URL: "http://a", Err: errors.New("refused")}
	without  = shows()
	astray   = shows(alerts.Alert{Receivers: []string{"pager"}})
	routed   = shows(alerts.Alert{Receivers: []string{"drydock", "pager"}})
	silenced = shows(alerts.Alert{Receivers: []string{"drydock"}, SilencedBy: []string{"s1"}})
)

// every returns the same poll again and again, every 15 s (the default interval), for the time.
func every(over time.Duration, l look) (out []look) {
	for range int(over / (15 * time.Second)) {
		out = append(out, l)
	}
	return out
}

func words(parts ...[]look) (out []look) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func of(replicas ...alerts.Replica) look { return look{replicas: replicas} }

func (l look) arrived(ago time.Duration) look { l.arrival = noon.Add(-ago); return l }

// judged returns the result after each poll; the first poll is at noon.
func judged(c *remediations.Config, was Result, looks []look) (out []Result) {
	var m Memory
	for i, l := range looks {
		w := &alerts.Snapshot{AskedAt: noon.Add(time.Duration(i) * 15 * time.Second), Replicas: l.replicas}
		m, was = m.Judge(c, w, l.arrival, l.posts, was)
		out = append(out, was)
	}
	return out
}

func TestSelfTestSaysHowFarTheAlertGets(t *testing.T) {
	const minute = time.Minute
	fresh, ok := Result{}, Result{State: OK, Since: noon.Add(-time.Hour)}
	cutOff := Result{State: NotArrived, Since: noon.Add(-time.Hour)}
	for name, c := range map[string]struct {
		was   Result
		looks []look
		want  State
	}{
		"nobody has answered yet":                           {fresh, every(10*minute, of(noReply)), Unknown},
		"nobody answers any more":                           {fresh, words(every(minute, of(routed).arrived(0)), every(minute, of(noReply).arrived(0))), Unknown},
		"nobody answers for a moment":                       {fresh, words(every(minute, of(routed).arrived(0)), every(30*time.Second, of(noReply).arrived(0))), OK},
		"one of two has it, and routes it here":             {fresh, every(minute, of(without, routed).arrived(0)), OK},
		"one of two routes it elsewhere":                    {fresh, every(minute, of(astray, routed).arrived(0)), OK},
		"the one that routes it here does not answer":       {fresh, every(minute, of(astray, noReply).arrived(0)), Unrouted},
		"two alerts, one of them routed here":               {fresh, every(minute, of(shows(astray.SelfTest[0], routed.SelfTest[0])).arrived(0)), OK},
		"two alerts, one of them silenced":                  {fresh, every(minute, of(shows(silenced.SelfTest[0], routed.SelfTest[0])).arrived(0)), OK},
		"nobody has it, in the first poll":                  {fresh, every(15*time.Second, of(without)), Unknown},
		"nobody has it, in the second poll":                 {fresh, every(30*time.Second, of(without)), Unknown},
		"nobody has it, within a minute":                    {fresh, every(45*time.Second, of(without)), Missing},
		"the one that answers does not have it":             {fresh, every(45*time.Second, of(without, noReply)), Missing},
		"routed elsewhere, within a minute":                 {fresh, every(45*time.Second, of(astray)), Unrouted},
		"silenced and routed elsewhere":                     {fresh, every(45*time.Second, of(shows(alerts.Alert{Receivers: []string{"pager"}, SilencedBy: []string{"s1"}}))), Unrouted},
		"missing, then routed elsewhere":                    {fresh, words(every(minute, of(without)), every(30*time.Second, of(astray))), Unrouted},
		"now missing, now routed elsewhere":                 {fresh, words(of(without).twice(of(astray)), of(without).twice(of(astray))), Unknown},
		"gone within 45 s of the last poll that had it":     {fresh, words(every(minute, of(routed).arrived(0)), every(45*time.Second, of(without).arrived(0))), Missing},
		"gone for two polls":                                {fresh, words(every(minute, of(routed).arrived(0)), every(30*time.Second, of(without).arrived(0))), OK},
		"gone, back, and gone again for a poll":             {fresh, words(every(minute, of(routed).arrived(0)), every(30*time.Second, of(without).arrived(0)), every(15*time.Second, of(routed).arrived(0)), every(30*time.Second, of(without).arrived(0))), OK},
		"an Alertmanager started again, without alerts":     {fresh, words(every(minute, of(routed).arrived(0)), every(10*minute, of(noReply).arrived(0)), every(30*time.Second, of(without).arrived(0))), Unknown},
		"an Alertmanager started again, and none came":      {fresh, words(every(minute, of(routed).arrived(0)), every(10*minute, of(noReply).arrived(0)), every(time.Minute, of(without).arrived(0))), Missing},
		"an Alertmanager started again while it is missing": {fresh, words(every(15*time.Second, of(without)), every(30*time.Second, of(noReply)), every(30*time.Second, of(without))), Unknown},
		"an Alertmanager started again while it is awaited": {fresh, words(every(minute, of(routed)), every(30*time.Second, of(without)), every(15*time.Second, of(routed))), NotArrived},
		"a new leader does not vouch for the old one":       {ok, every(15*time.Second, of(without).arrived(0)), Unknown},
		"a new leader sees what the old one saw":            {ok, every(15*time.Second, of(routed).arrived(0)), OK},
		"a bad state outlives a restart":                    {Result{State: Missing, Since: noon}, every(15*time.Second, of(without)), Missing},
		"silenced":                                          {ok, every(15*time.Second, of(silenced).arrived(0)), Unknown},
		"awaited for the first time":                        {fresh, every(90*time.Second, of(routed)), Unknown},
		"never arrived, within two minutes":                 {fresh, every(105*time.Second, of(routed)), NotArrived},
		"arrived a long time ago, and Drydock was down":     {ok, every(90*time.Second, of(routed).arrived(time.Hour)), Unknown},
		"arrived a long time ago, and comes no more":        {ok, every(105*time.Second, of(routed).arrived(time.Hour)), NotArrived},
		"cut off already before the restart":                {cutOff, every(15*time.Second, of(routed).arrived(time.Hour)), NotArrived},
		"cut off, and arrives again":                        {cutOff, every(15*time.Second, of(routed).arrived(0)), OK},
		"ten minutes without an arrival":                    {fresh, every(11*minute, of(routed).arrived(0)), OK},
		"eleven minutes without an arrival":                 {fresh, every(11*minute+30*time.Second, of(routed).arrived(0)), NotArrived},
		"the silence of an hour has ended":                  {fresh, words(every(time.Hour, of(silenced).arrived(0)), every(10*minute, of(routed).arrived(0))), Unknown},
		"the silence has ended, and it comes no more":       {fresh, words(every(time.Hour, of(silenced).arrived(0)), every(12*minute, of(routed).arrived(0))), NotArrived},
		"the route is mended, and it never arrived":         {fresh, words(every(time.Hour, of(astray)), every(105*time.Second, of(routed))), NotArrived},
		"the route is mended, and it arrived an hour ago":   {fresh, words(every(minute, of(routed).arrived(0)), every(time.Hour, of(astray).arrived(0)), every(10*minute, of(routed).arrived(0))), Unknown},
		"the route is mended, a moment ago":                 {fresh, words(every(time.Hour, of(astray)), every(30*time.Second, of(routed))), Unknown},
		"arrived here, though the ledger cannot be saved":   {fresh, every(minute, look{replicas: []alerts.Replica{routed}, posts: Posts{Arrived: noon}}), OK},
		"arrived by a clock that is a minute ahead":         {fresh, every(15*time.Second, of(routed).arrived(-minute)), OK},
		"arrived by a clock that is hours ahead":            {fresh, every(2*minute, of(routed).arrived(-5*time.Hour)), NotArrived},
		"there is no Alertmanager at all":                   {fresh, every(minute, of()), Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			all := judged(selfTestConfig(t), c.was, c.looks)
			last := all[len(all)-1]
			require.Equal(t, c.want, last.State, last.Message)
			require.NotEmpty(t, last.Since)
			if c.looks[len(c.looks)-1].replicas != nil && c.was.State != last.State {
				require.NotEmpty(t, last.Message)
			}
		})
	}
}

func (l look) twice(other look) []look { return []look{l, other} }

// TestSelfTestNamesWhatToLookAt: each bad state names the likely cause.
func TestSelfTestNamesWhatToLookAt(t *testing.T) {
	named := astray
	named.NoReceiver, named.Akin = true, []string{"monitoring/drydock/drydock"}
	none := astray
	none.NoReceiver = true
	for name, c := range map[string]struct {
		looks []look
		want  []string
	}{
		"missing":                       {every(time.Minute, of(without)), []string{`{alertname="DrydockSelfTest"}`, "ruleSelector", "release"}},
		"unrouted":                      {every(time.Minute, of(astray)), []string{`to "pager" and not to "drydock" (alertmanager.receiver)`, "its own namespace"}},
		"routed to nobody":              {every(time.Minute, of(shows(alerts.Alert{}))), []string{"to no receiver"}},
		"no receiver of the name":       {every(time.Minute, of(none)), []string{`no receiver with this name: add one`, "namespace/name/receiver"}},
		"a receiver of a longer name":   {every(time.Minute, of(named)), []string{`no receiver with this name, but "monitoring/drydock/drydock"`}},
		"one replica has the receiver":  {every(time.Minute, of(none, astray)), []string{"check the alert's route"}},
		"the other one has it":          {every(time.Minute, of(astray, none)), []string{"check the alert's route"}},
		"never arrived":                 {every(2*time.Minute, of(routed)), []string{"never arrived", "the URL", "token", "network"}},
		"not arrived any more":          {every(15*time.Minute, of(routed).arrived(0)), []string{"not arrived since 2026-", "the URL"}},
		"refused":                       {every(2*time.Minute, look{replicas: []alerts.Replica{routed}, posts: Posts{Refused: noon}}), []string{"401", "receiver.tokenFile", "the URL", "the network", "if Alertmanager sent it"}},
		"silenced":                      {every(15*time.Second, of(silenced)), []string{"silenced by s1"}},
		"awaited":                       {every(15*time.Second, of(routed)), []string{"waits for it to arrive"}},
		"who was refused in old days":   {every(20*time.Minute, look{replicas: []alerts.Replica{routed}, posts: Posts{Refused: noon}}), []string{"the URL"}},
		"receivers beyond any sentence": {every(time.Minute, of(shows(alerts.Alert{Receivers: manyReceivers(500)}))), []string{`"r0", `}},
	} {
		t.Run(name, func(t *testing.T) {
			all := judged(selfTestConfig(t), Result{}, c.looks)
			message := all[len(all)-1].Message
			for _, part := range c.want {
				require.Contains(t, message, part)
			}
			require.Less(t, len(message), 1000, "an Event's note")
		})
	}
}

func manyReceivers(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("r", i))
	}
	return out
}

func TestSelfTestThatIsNotAskedForSaysNothing(t *testing.T) {
	c := selfTestConfig(t)
	c.SelfTest = nil
	for _, s := range judged(c, Result{State: Missing, Since: noon}, every(time.Hour, of(without))) {
		require.Zero(t, s)
	}
	require.False(t, c.IsSelfTest(map[string]string{"alertname": "DrydockSelfTest"}))
}

// TestSelfTestIsNeverOKWithoutCause: in every history of polls, the result is ok only if two things
// are true. A replica routed the alert to Drydock within the last 45 s, and an alert arrived within
// the last eleven minutes. A bad result needs at least two polls.
func TestSelfTestIsNeverOKWithoutCause(t *testing.T) {
	c := selfTestConfig(t)
	seen := map[State]int{}
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		was := Result{State: rapid.SampledFrom(append(States, "")).Draw(t, "before"), Since: noon}
		now, arrival, lastRouted, badSince := noon, time.Time{}, time.Time{}, time.Time{}
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			kinds := rapid.SliceOfN(rapid.SampledFrom([]alerts.Replica{noReply, without, astray, routed, routed, silenced}), 1, 2).Draw(t, "replicas")
			arrives := rapid.IntRange(0, 3).Draw(t, "arrives") > 0
			for range rapid.IntRange(1, 12).Draw(t, "polls") {
				now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, 15 * time.Second, 15 * time.Second, 90 * time.Second}).Draw(t, "later"))
				if arrives {
					arrival = now.Add(-rapid.SampledFrom([]time.Duration{-5 * time.Hour, 0, time.Minute, 6 * time.Hour}).Draw(t, "ago"))
				}
				here, gone := false, true
				for _, r := range kinds {
					for _, a := range r.SelfTest {
						here = here || (a.Receivers[0] == "drydock")
					}
					gone = gone && r.Err != nil
				}
				if here {
					lastRouted, badSince = now, time.Time{}
				} else if badSince.IsZero() && !gone {
					badSince = now
				}
				before := was
				m, was = m.Judge(c, &alerts.Snapshot{AskedAt: now, Replicas: kinds}, arrival, Posts{}, was)
				seen[was.State]++
				require.Contains(t, States, was.State)
				if was.State == OK {
					require.False(t, lastRouted.IsZero())
					require.LessOrEqual(t, now.Sub(lastRouted), 45*time.Second)
					require.LessOrEqual(t, now.Sub(arrival), 11*time.Minute)
					require.GreaterOrEqual(t, now.Sub(arrival), -2*time.Minute)
				}
				if (was.State == Missing || was.State == Unrouted) && before.State != was.State {
					require.True(t, now.After(badSince), "one word alone says nothing")
				}
				require.Equal(t, before.State == was.State, before.Since.Equal(was.Since))
			}
		}
	})
	for _, s := range States {
		require.NotZero(t, seen[s], s)
	}
}

// TestWhoKeepsTheSelfTestQuietIsNamed: the message names what holds the alert back: a silence
// first, then an inhibition, then a time interval. If nothing does, the text is empty.
func TestWhoKeepsTheSelfTestQuietIsNamed(t *testing.T) {
	for quiet, a := range map[string]alerts.Alert{
		"":                               {},
		"silenced by s1, s2":             {SilencedBy: []string{"s1", "s2"}, InhibitedBy: []string{"f"}},
		"inhibited by the alert f":       {InhibitedBy: []string{"f"}, MutedBy: []string{"night"}},
		"muted by the time interval day": {MutedBy: []string{"day"}},
	} {
		require.Equal(t, quiet, quietBy(a))
	}
}
