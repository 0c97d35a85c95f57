package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// rounds lets many callers share few polls: one round runs, and at most one more
// waits for it to end. A caller never gets a round that began before its call,
// since what that one heard may be older than what the caller wants confirmed.
type rounds struct {
	mu      sync.Mutex
	running *round
	next    *round
}

// round is one poll and those who wait for it.
type round struct {
	ctx      context.Context // of the round: it outlives each single caller
	cancel   context.CancelFunc
	waiting  int
	done     chan struct{}
	snapshot Snapshot // set before done is closed
}

// Poll asks all replicas at once, and returns what each said. It never fails as
// a whole: every failure is a replica's. All replies were asked for at or after
// the call. Callers at the same time share one poll, and no replica is polled
// twice at once. It returns within twice the timeout plus, for a call during
// another's poll, the rest of that one.
//
// When ctx ends first, the snapshot has one replica a URL, each with ctx's error.
func (c *Client) Poll(ctx context.Context) Snapshot {
	r := c.join(ctx)
	select {
	case <-r.done:
		return r.snapshot
	case <-ctx.Done():
		c.leave(r)
		s := c.unasked(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // a caller that stops says nothing of the replicas
			c.up.set(s.Replicas)
		}
		return s
	}
}

func (c *Client) join(ctx context.Context) *round {
	c.rounds.mu.Lock()
	defer c.rounds.mu.Unlock()
	if c.rounds.running == nil {
		c.rounds.running = newRound(ctx)
		go c.run(c.rounds.running)
		return c.rounds.running
	}
	if c.rounds.next == nil {
		c.rounds.next = newRound(ctx)
	} else {
		c.rounds.next.waiting++
	}
	return c.rounds.next
}

// newRound has its first caller waiting already.
func newRound(ctx context.Context) *round {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &round{ctx: ctx, cancel: cancel, waiting: 1, done: make(chan struct{})}
}

// leave stops a round that nobody waits for any more.
func (c *Client) leave(r *round) {
	c.rounds.mu.Lock()
	defer c.rounds.mu.Unlock()
	r.waiting--
	if r.waiting > 0 {
		return
	}
	r.cancel()
	switch r {
	case c.rounds.next:
		c.rounds.next = nil
	case c.rounds.running: // its end is not waited for: it may hang in spite of its context
		c.advance()
	}
}

func (c *Client) run(r *round) {
	defer r.cancel()
	r.snapshot = c.askAll(r.ctx)
	close(r.done)

	c.rounds.mu.Lock()
	defer c.rounds.mu.Unlock()
	if c.rounds.running == r {
		c.advance()
	}
}

// advance begins the round that waits, if any. The caller holds the lock.
func (c *Client) advance() {
	c.rounds.running, c.rounds.next = c.rounds.next, nil
	if c.rounds.running != nil {
		go c.run(c.rounds.running)
	}
}

// unasked is the snapshot of a caller that left: it says of every URL that
// nothing is known.
func (c *Client) unasked(ctx context.Context) Snapshot {
	s := Snapshot{At: c.now()}
	for _, e := range c.endpoints {
		s.Replicas = append(s.Replicas, Replica{
			URL: e.display,
			Err: fmt.Errorf("waiting for Alertmanager %s: %w", e.display, context.Cause(ctx)),
		})
	}
	return s
}
