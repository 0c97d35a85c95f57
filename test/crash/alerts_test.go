package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drydock.dev/drydock/internal/lab"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

// alerts simulates a yard's Prometheus and the part of its Alertmanager that posts. Drydock queries
// a real Alertmanager, but that has only one configuration for all yards. Like Alertmanager, it
// repeats a post until the answer is 200.
type alerts struct {
	yard    *yard
	posting sync.WaitGroup
	ctx     context.Context // ends the posts that no replica accepts
	began   time.Time
}

func newAlerts(y *yard) *alerts {
	ctx, cancel := context.WithCancel(context.WithoutCancel(y.t.Context()))
	a := &alerts{yard: y, ctx: ctx, began: time.Now().Add(-time.Minute).UTC()}
	y.t.Cleanup(func() {
		cancel()
		a.posting.Wait()
	})
	return a
}

func labelsOf(node string) map[string]string {
	return map[string]string{"alertname": "NodeNotReady", "node": node, "remediation": "node-not-ready", "severity": "critical"}
}

// fire makes the node's alert fire. When it returns, the post is under way.
func (a *alerts) fire(ctx context.Context, node string) error {
	if err := sendAlert(ctx, a.yard.lab.AlertmanagerURLs(), labelsOf(node), a.began, time.Now().Add(time.Hour)); err != nil {
		return err
	}
	a.post("firing", node)
	return nil
}

// resolve ends the node's alert. It waits until a replica has accepted the post, because there may
// be no replica at that moment.
func (a *alerts) resolve(ctx context.Context, node string) error {
	if err := sendAlert(ctx, a.yard.lab.AlertmanagerURLs(), labelsOf(node), a.began, time.Now()); err != nil {
		return err
	}
	select {
	case <-a.post("resolved", node):
	case <-time.After(10 * time.Second):
	}
	return nil
}

// post posts the alert to any replica, again and again until one has accepted it. Then it closes
// the channel.
func (a *alerts) post(status, node string) <-chan struct{} {
	body := encoded(map[string]any{"version": "4", "receiver": "drydock", "status": status, "alerts": []any{map[string]any{
		"status": status, "startsAt": a.began, "endsAt": time.Time{}, "labels": labelsOf(node),
	}}})
	taken := make(chan struct{})
	a.posting.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, r := range a.yard.replicas {
				if err := r.deliver(a.ctx, body); err == nil {
					close(taken)
					return
				}
			}
			select {
			case <-tick.C:
			case <-a.ctx.Done():
				return
			}
		}
	})
	return taken
}

// deliver posts to the receiver of the replica.
func (r *replica) deliver(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 12*time.Second) // the receiver answers 503 within 10 s
	defer cancel()
	secret, err := os.ReadFile(r.token)
	if err != nil {
		return err
	}
	return send(ctx, r.ReceiverURL, strings.TrimSpace(string(secret)), body)
}

// sendAlert sends an alert to Alertmanager as Prometheus does: it repeats a request that
// Alertmanager did not accept.
func sendAlert(ctx context.Context, alertmanagers []string, labels map[string]string, starts, ends time.Time) error {
	body := encoded([]any{map[string]any{"labels": labels, "startsAt": starts, "endsAt": ends.UTC()}})
	for _, url := range alertmanagers {
		var last error
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, lab.Patience, true, func(ctx context.Context) (bool, error) {
			last = send(ctx, url+"/api/v2/alerts", "", body)
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("telling Alertmanager of %v: %w", labels, errors.Join(err, last))
		}
	}
	return nil
}

func send(ctx context.Context, url, token string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// TestAnAlertThatWasNotTakenIsSentAgain: a single lost post on a busy machine must not end an
// alert.
func TestAnAlertThatWasNotTakenIsSentAgain(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if posts.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	require.NoError(t, sendAlert(t.Context(), []string{server.URL}, map[string]string{"alertname": "Watchdog"}, time.Now(), time.Now().Add(time.Minute)))
	require.EqualValues(t, 2, posts.Load())
}
