package alertmanager

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/atonce"
)

// gated is a replica that holds every request until the test lets it go.
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
		g.total.Add(1)
		g.arrived <- struct{}{}
		select {
		case <-g.release:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("[]"))
	})
	return g
}

// waitingForNext says how many callers wait for the round after the running one.
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
	var clock atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(clock.Add(1)) * time.Second) }
	c := newClient(t, Options{URLs: []string{g.url}, Timeout: time.Minute, Now: now})

	first := make(chan Snapshot, 1)
	go func() { first <- c.Poll(t.Context()) }()
	<-g.arrived

	// Ten come while the first is under way: none may have its answer.
	const callers = 10
	called := now()
	var wg sync.WaitGroup
	later := make(chan Snapshot, callers)
	for range callers {
		wg.Go(func() { later <- c.Poll(t.Context()) })
	}
	require.Eventually(t, func() bool { return c.waitingForNext() == callers }, time.Minute, time.Millisecond)

	g.release <- struct{}{}
	require.True(t, (<-first).At.Before(called))
	<-g.arrived
	g.release <- struct{}{}
	wg.Wait()
	close(later)
	for s := range later {
		require.NoError(t, s.Replicas[0].Err)
		require.True(t, s.At.After(called), "a reply was asked for before the call")
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
				s := c.Poll(t.Context())
				if s.Replicas[0].Err != nil {
					t.Error(s.Replicas[0].Err)
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
	left := make(chan Snapshot, 1)
	go func() { left <- c.Poll(ctx) }()
	<-g.arrived

	stays := make(chan Snapshot, 1)
	go func() { stays <- c.Poll(t.Context()) }()
	require.Eventually(t, func() bool { return c.waitingForNext() == 1 }, time.Minute, time.Millisecond)

	// The first poll has no other caller, so it is given up and the next begins.
	cancel()
	s := <-left
	require.Len(t, s.Replicas, 1)
	require.ErrorIs(t, s.Replicas[0].Err, context.Canceled)
	<-g.arrived
	require.Eventually(t, func() bool { return g.polls.Now() == 1 }, time.Minute, time.Millisecond, "the one that was given up is over there, too")
	g.release <- struct{}{}
	s = <-stays
	require.NoError(t, s.Replicas[0].Err, "one caller's leaving is not another's")
}
