package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// eventsTold keeps the Events.
type eventsTold chan engine.Event

func (e eventsTold) Event(_ string, told engine.Event) { e <- told }

// TestEventsAboutPostsSayWhatIsWrongWithThem: each bound has its own remedy.
func TestEventsAboutPostsSayWhatIsWrongWithThem(t *testing.T) {
	cfg, _, err := config.Load(write(t, "config.yaml", sound), config.Options{SkipFiles: true})
	require.NoError(t, err)
	cfg.Receiver.Listen, cfg.Receiver.TokenFile, cfg.Receiver.Insecure, cfg.Receiver.MaxBodyBytes = "127.0.0.1:0", "", true, 50_000
	p := &program{cfg: cfg, posts: &posts{}, reg: prometheus.NewRegistry(), log: logr.Discard()}
	told := make(eventsTold, 1)
	var tell engine.Recorder = told
	p.tell.Store(&tell)
	s, err := p.newReceiver()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	select {
	case <-s.Listening():
	case err := <-ended:
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		body   string
		code   int
		reason string
		says   string
	}{
		"too long":        {strings.Repeat(" ", 50_001), http.StatusRequestEntityTooLarge, "PostTooLarge", "longer than 50000 bytes (receiver.maxBodyBytes)"},
		"too many alerts": {`{"version":"4","alerts":[` + strings.Repeat("{},", 10_000) + `{}]}`, http.StatusRequestEntityTooLarge, "PostTooLarge", "more than 10000 alerts"},
		"cut off":         {`{"version":"4","truncatedAlerts":12,"alerts":[]}`, http.StatusOK, "PostTruncated", "max_alerts"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+"/v1/alerts", strings.NewReader(c.body))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, c.code, answer.StatusCode)
			require.Len(t, told, 1)
			e := <-told
			require.Equal(t, c.reason, e.Reason)
			require.Contains(t, e.Note, c.says)
		})
	}
}

// TestTheEventAboutAFullNodeNamesTheBoundsThatApply: those by which an alert is refused.
func TestTheEventAboutAFullNodeNamesTheBoundsThatApply(t *testing.T) {
	told := make(eventsTold, 1)
	j := &joined{program: &program{cfg: &config.Config{}, posts: &posts{}}, tell: told}
	j.newInbox().Full("n1")
	note := (<-told).Note

	long := map[string]string{"severity": strings.Repeat("x", 200)}
	annotations, size := map[string]string{}, 0
	for i := 0; ; i++ {
		a := remediations.Alert{V: 1, Name: strings.Repeat("n", 200), Policy: "p", Status: remediations.StatusFiring, StartsAt: time.Now(), Labels: long, Fingerprint: fmt.Sprintf("%016x", i)}
		if _, fits := remediations.Admit(annotations, a); !fits {
			require.Contains(t, note, fmt.Sprintf("%d alerts that take %d bytes", remediations.MaxAlertsPerNode, remediations.MaxAlertBytes))
			require.Greater(t, size+len(a.Key())+len(a.Encode()), remediations.MaxAlertBytes)
			require.LessOrEqual(t, size, remediations.MaxAlertBytes)
			return
		}
		annotations[a.Key()] = a.Encode()
		size = remediations.OwnBytes(annotations)
	}
}

// TestWhatWasMeantForDrydockIsLookedAt: a typing error in the label that names the policy is nothing that a policy wants.
func TestWhatWasMeantForDrydockIsLookedAt(t *testing.T) {
	cfg, _, err := config.Load(write(t, "config.yaml", sound), config.Options{SkipFiles: true})
	require.NoError(t, err)
	keep := kept(cfg.Core)
	for value, looked := range map[string]bool{"node-not-ready": true, "node-not-ready ": true, "node-not-redy": true, "none": false, "": false} {
		require.Equal(t, looked, keep(map[string]string{"alertname": "NodeNotReady", "remediation": value, "node": "n1"}), "%q", value)
	}
	require.False(t, keep(map[string]string{"alertname": "Watchdog"}))
}
