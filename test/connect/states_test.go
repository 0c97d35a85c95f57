package connect

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/selftest"
)

// These are the time limits that the documentation promises.
const (
	missingWithin   = time.Minute
	tokenWithin     = 2 * time.Minute
	correctedWithin = 90 * time.Second
)

// TestAnInstallationSaysHowItIsConnected makes each mistake in an installation of its own, and then
// corrects it.
func TestAnInstallationSaysHowItIsConnected(t *testing.T) {
	h := newHarbour(t)
	t.Run("side by side", func(t *testing.T) {
		for name, way := range map[string]func(*berth){
			lab.Namespace: connected, "no-rule": rulesNotLoaded, "wrong-name": receiverOfAnotherName, "wrong-route": routeDoesNotMatch,
			"wrong-token": tokenIsAnother, "wrong-url": urlLeadsNowhere,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				way(h.berth(t, name))
			})
		}
	})
}

// connected is the control. There are two replicas, and the follower receives the posts. Then an
// Alertmanager is restarted, and then Drydock receives nothing any more.
func connected(b *berth) {
	elsewhere, err := lab.FreePort()
	require.NoError(b.t, err)
	stopped := map[string]any{"urls": b.lab.AlertmanagerURLs()[1:]}
	b.set(b.t, b.name, b.receiver())
	leader := b.start("", elsewhere, stopped)
	follower := b.start("-follower", b.port, stopped)
	b.becomes(leader, selftest.OK, b.began, time.Minute)
	said, err := b.selfTest(leader, "1m")
	require.NoError(b.t, err, said)
	require.Contains(b.t, said, "ok, last arrival ")
	const counter = `drydock_alerts_received_total{result="self_test"}`
	require.Contains(b.t, b.metrics(leader), counter+" 0\n", "the post went to the follower")
	require.NotContains(b.t, b.metrics(follower), counter+" 0\n")
	require.NotContains(b.t, b.metrics(follower), "drydock_selftest_state", "which says nothing itself")

	b.lab.StopAlertmanager(1)
	require.NoError(b.t, b.lab.StartAlertmanager(b.t.Context(), 1))
	for end := time.Now().Add(50 * time.Second); time.Now().Before(end); b.pause() {
		require.False(b.t, b.ledger().Status.SelfTest.State.Bad(), "an Alertmanager that is started again is no fault")
	}

	b.set(b.t, b.name, nil)
	arrival := b.ledger().Arrival
	require.NotZero(b.t, arrival)
	leader.Kill()
	follower.Kill()
	b.set(b.t, b.name, &route{receiver: b.name, matcher: `alertname="DrydockSelfTest"`, url: nowhere(b), tokenFile: b.token})
	again := b.start("-again", b.port, stopped)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); b.pause() {
		l := b.ledger()
		require.Equal(b.t, arrival, l.Arrival, "the last arrival outlives a restart")
		// If Alertmanager is too busy to answer in time, the state is unknown until the next poll.
		require.Contains(b.t, []selftest.State{selftest.OK, selftest.Unknown}, l.Status.SelfTest.State)
	}
	b.measures(again, fmt.Sprintf("drydock_selftest_last_arrival_timestamp_seconds %s\n", exposed(arrival)))
	b.measures(again, `drydock_selftest_state{state="ok"} 1`)
	require.Empty(b.t, b.events(), "nobody was ever told that it is not connected")
}

// exposed formats a time as /metrics shows it.
func exposed(at time.Time) string {
	return strconv.FormatFloat(float64(at.Unix()), 'g', -1, 64)
}

// rulesNotLoaded: Prometheus does not have the alert. That happens if a PrometheusRule lacks the
// label that the selector needs.
func rulesNotLoaded(b *berth) {
	const name = "DrydockSelfTestLoadedLater"
	r := b.receiver()
	r.matcher = `alertname="` + name + `"`
	b.set(b.t, b.name, r)
	d := b.start("", b.port, map[string]any{"selfTest": r.matcher})
	b.becomes(d, selftest.Missing, b.began, missingWithin)
	rules, err := os.ReadFile(ruleFile)
	require.NoError(b.t, err)
	require.NoError(b.t, b.lab.LoadRules(b.t.Context(), "self-test", []byte(strings.ReplaceAll(string(rules), "alert: DrydockSelfTest\n", "alert: "+name+"\n"))))
	b.becomes(d, selftest.OK, time.Now(), correctedWithin)
}

// receiverOfAnotherName: alertmanager.receiver is not the name that Alertmanager uses. That happens
// with an AlertmanagerConfig.
func receiverOfAnotherName(b *berth) {
	r := b.receiver()
	r.receiver = "monitoring/x/" + b.name
	b.set(b.t, b.name, r)
	d := b.start("", b.port, nil)
	const name = `no receiver with this name, but "monitoring/x/wrong-name"`
	l := b.becomes(d, selftest.Unrouted, b.began, missingWithin)
	require.Contains(b.t, l.Status.SelfTest.Message, name)
	said, err := b.selfTest(d, "15s")
	require.Error(b.t, err)
	// Between the two answers, parallel tests may change the routes, which the message lists before
	// the name.
	before, after, last := strings.Cut(said, "the self-test did not succeed in time; the last answer: unrouted: Alertmanager has the alert")
	require.True(b.t, last, before)
	require.Contains(b.t, after, name)
	d.Kill()
	d = b.start("-mended", b.port, map[string]any{"receiver": r.receiver})
	b.becomes(d, selftest.OK, b.began, correctedWithin)
}

// routeDoesNotMatch: the operator adds a matcher to the routes of an AlertmanagerConfig.
func routeDoesNotMatch(b *berth) {
	r := b.receiver()
	r.matcher = `namespace="monitoring"`
	b.set(b.t, b.name, r)
	d := b.start("", b.port, nil)
	l := b.becomes(d, selftest.Unrouted, b.began, missingWithin)
	require.NotContains(b.t, l.Status.SelfTest.Message, "no receiver with this name")
	b.set(b.t, b.name, b.receiver())
	b.becomes(d, selftest.OK, time.Now(), correctedWithin)
}

func tokenIsAnother(b *berth) {
	wrong, err := b.lab.WriteSecret("another-token", "another-token-than-the-receivers")
	require.NoError(b.t, err)
	r := b.receiver()
	r.tokenFile = wrong
	b.set(b.t, b.name, r)
	d := b.start("", b.port, nil)
	l := b.becomes(d, selftest.NotArrived, b.began, tokenWithin)
	require.Contains(b.t, l.Status.SelfTest.Message, "401")
	b.set(b.t, b.name, b.receiver())
	b.becomes(d, selftest.OK, time.Now(), correctedWithin)
}

func urlLeadsNowhere(b *berth) {
	r := b.receiver()
	r.url = nowhere(b)
	b.set(b.t, b.name, r)
	d := b.start("", b.port, nil)
	l := b.becomes(d, selftest.NotArrived, b.began, tokenWithin)
	require.Contains(b.t, l.Status.SelfTest.Message, "the URL")
	b.set(b.t, b.name, b.receiver())
	b.becomes(d, selftest.OK, time.Now(), correctedWithin)
}

// nowhere is a URL at which nothing listens.
func nowhere(b *berth) string {
	port, err := lab.FreePort()
	require.NoError(b.t, err)
	return fmt.Sprintf("http://127.0.0.1:%d/v1/alerts", port)
}
