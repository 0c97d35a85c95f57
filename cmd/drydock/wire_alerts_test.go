package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// sentEvents keeps the Events.
type sentEvents chan engine.Event

func (e sentEvents) Event(_ string, event engine.Event) { e <- event }

// TestEventsAboutPostsSayWhatIsWrongWithThem: each bound has its own remedy.
func TestEventsAboutPostsSayWhatIsWrongWithThem(t *testing.T) {
	cfg, _, err := config.Load(write(t, "config.yaml", sound), config.Options{SkipFiles: true})
	require.NoError(t, err)
	cfg.Receiver.Listen, cfg.Receiver.TokenFile, cfg.Receiver.Insecure, cfg.Receiver.MaxBodyBytes = "127.0.0.1:0", "", true, 50_000
	p := &program{cfg: cfg, posts: &posts{}, reg: prometheus.NewRegistry(), log: logr.Discard()}
	sent := make(sentEvents, 1)
	var recorder engine.Recorder = sent
	p.recorder.Store(&recorder)
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
			require.Len(t, sent, 1)
			e := <-sent
			require.Equal(t, c.reason, e.Reason)
			require.Contains(t, e.Note, c.says)
		})
	}
}

// TestTheEventAboutAFullNodeNamesTheBoundsThatApply: the Event has the limits that refuse an alert.
func TestTheEventAboutAFullNodeNamesTheBoundsThatApply(t *testing.T) {
	sent := make(sentEvents, 1)
	j := &joined{program: &program{cfg: &config.Config{}, posts: &posts{}}, recorder: sent}
	j.newIntake().Full("n1")
	note := (<-sent).Note

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

// TestAlertsMeantForDrydockAreKept: a typing error in the label that names the policy is
// nothing that a policy wants.
func TestAlertsMeantForDrydockAreKept(t *testing.T) {
	cfg, _, err := config.Load(write(t, "config.yaml", sound), config.Options{SkipFiles: true})
	require.NoError(t, err)
	keep := kept(cfg.Core)
	for value, looked := range map[string]bool{"node-not-ready": true, "node-not-ready ": true, "node-not-redy": true, "none": false, "": false} {
		require.Equal(t, looked, keep(map[string]string{"alertname": "NodeNotReady", "remediation": value, "node": "n1"}), "%q", value)
	}
	require.False(t, keep(map[string]string{"alertname": "Watchdog"}))
}

// TestTheProcessReportsAnInhibitionByTheNodesOwnAlert, though no policy takes the alert that
// inhibits.
func TestTheProcessReportsAnInhibitionByTheNodesOwnAlert(t *testing.T) {
	at := time.Now().UTC().Format(time.RFC3339)
	by := map[string]string{"alertname": "KubeNodeNotReady", "node": "n1"}
	ill := map[string]string{"alertname": "NodeNotReady", "node": "n1", "remediation": "node-not-ready", "severity": "critical"}
	alert := func(labels map[string]string, state string, inhibitedBy ...string) map[string]any {
		return map[string]any{
			"labels": labels, "startsAt": at, "receivers": []any{map[string]string{"name": "drydock"}},
			"status": map[string]any{"state": state, "inhibitedBy": inhibitedBy},
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = []any{}
		if strings.HasSuffix(r.URL.Path, "/alerts") {
			answer = []any{alert(ill, "suppressed", remediations.Fingerprint(by)), alert(by, "active"), alert(map[string]string{"alertname": "Watchdog"}, "active")}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	cfg, _, err := config.Load(write(t, "config.yaml", strings.ReplaceAll(sound, "http://alertmanager:9093", server.URL)), config.Options{SkipFiles: true})
	require.NoError(t, err)
	client, err := newAlertmanager(cfg, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	said := &alerts.Snapshot{AskedAt: time.Now(), Replicas: client.Look(t.Context())}
	require.Equal(t, "inhibited by the alert KubeNodeNotReady ("+remediations.Fingerprint(by)+") about the same node", said.VerdictFor(remediations.Fingerprint(ill), cfg.Core, "").Message)
}

// TestTheSelfTestsAlertBringsADryRun of Drydock's writes soon. The control is the same time without
// the alert.
func TestTheSelfTestsAlertBringsADryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		client, dryRuns := fake.NewClientset(node), atomic.Int32{}
		client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			dryRuns.Add(1)
			return true, node, nil
		})
		cfg := &config.Config{Core: &remediations.Config{Registry: remediations.Shipped()}}
		j := &joined{program: &program{cfg: cfg, posts: newPosts(cfg, client, logr.Discard())}}
		j.writePath = kube.NewWritePath(client, func(context.Context) ([]*corev1.Node, error) { return []*corev1.Node{node}, nil }, cfg.Core, below, clock.RealClock{}, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = j.writePath.Start(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, dryRuns.Load(), "the one at the start, and the control")
		j.newIntake().Arrived()
		synctest.Wait()
		require.EqualValues(t, 2, dryRuns.Load())
		require.False(t, j.posts.known().Arrived.IsZero())
		cancel()
		synctest.Wait()
	})
}
