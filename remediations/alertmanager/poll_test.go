package alertmanager

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/atonce"
	"drydock.dev/drydock/remediations/alerts"
)

// gated is a replica that holds every request until the test releases it. Its answer has one alert,
// about a node whose name is the number of the request.
type gated struct {
	url     string
	arrived chan struct{}
	release chan struct{}
	polls   atonce.Count
	total   atomic.Int32
}

func newGated(t *testing.T) *gated {
	g := &gated{arrived: make(chan struct{}), release: make(chan struct{})}
	g.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		g.polls.Enter()
		defer g.polls.Leave()
		number := g.total.Add(1)
		g.arrived <- struct{}{}
		select {
		case <-g.release:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `[{"labels":{"node":"%d"},"startsAt":"2026-11-20T20:55:00Z","status":{"state":"active"}}]`, number)
	})
	return g
}

// answerTo returns the key of the alert in the answer to request number n.
func answerTo(number int) string { return keyOf(map[string]string{"node": fmt.Sprint(number)}) }

// waitingForNext returns how many callers wait for the round after the running one.
func (c *Client) waitingForNext() int {
	c.rounds.mu.Lock()
	defer c.rounds.mu.Unlock()
	if c.rounds.next == nil {
		return 0
	}
	return c.rounds.next.waiting
}

func TestPollAsksAfterTheCall(t *testing.T) {
	g := newGated(t)
	c := newClient(t, Options{URLs: []string{g.url}, Timeout: time.Minute})

	first := make(chan []alerts.Replica, 1)
	go func() { first <- c.Look(t.Context()) }()
	<-g.arrived

	// Ten callers come while the first round runs. None of them may get its answer.
	const callers = 10
	var wg sync.WaitGroup
	later := make(chan []alerts.Replica, callers)
	for range callers {
		wg.Go(func() { later <- c.Look(t.Context()) })
	}
	require.Eventually(t, func() bool { return c.waitingForNext() == callers }, time.Minute, time.Millisecond)
	require.EqualValues(t, 1, g.total.Load(), "every later request comes after the calls")

	g.release <- struct{}{}
	require.Contains(t, (<-first)[0].Alerts, answerTo(1))
	<-g.arrived
	g.release <- struct{}{}
	wg.Wait()
	close(later)
	for replicas := range later {
		require.NoError(t, replicas[0].Err)
		require.Contains(t, replicas[0].Alerts, answerTo(2), "a reply was asked for before the call")
	}
	require.EqualValues(t, 2, g.total.Load(), "ten callers share one poll")
}

func TestPollKeepsOneRequestAReplica(t *testing.T) {
	g := newGated(t)
	c := newClient(t, Options{URLs: []string{g.url}, Timeout: time.Minute})
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-g.arrived:
				g.release <- struct{}{}
			case <-done:
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := c.Look(t.Context())[0].Err; err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	require.Equal(t, 1, g.polls.Most())
}

func TestACallerThatLeavesKnowsNothing(t *testing.T) {
	g := newGated(t)
	c := newClient(t, Options{URLs: []string{g.url}, Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan []alerts.Replica, 1)
	go func() { left <- c.Look(ctx) }()
	<-g.arrived

	stays := make(chan []alerts.Replica, 1)
	go func() { stays <- c.Look(t.Context()) }()
	require.Eventually(t, func() bool { return c.waitingForNext() == 1 }, time.Minute, time.Millisecond)

	// The first poll has no other caller, so it is cancelled and the next begins.
	cancel()
	replicas := <-left
	require.Len(t, replicas, 1)
	require.ErrorIs(t, replicas[0].Err, context.Canceled)
	<-g.arrived
	require.Eventually(t, func() bool { return g.polls.Now() == 1 }, time.Minute, time.Millisecond, "the one that was given up is over there, too")
	g.release <- struct{}{}
	require.NoError(t, (<-stays)[0].Err, "one caller's leaving is not another's")
}
