package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"drydock.dev/drydock/remediations/alerts"
)

// rounds lets many callers share few polls: one runs, and at most one more waits. A caller never
// gets a round that began before its call, because its answers may be older than the event that the
// caller must confirm.
type rounds struct {
	mu      sync.Mutex
	running *round
	next    *round
}

type round struct {
	ctx      context.Context // the round's own context, which outlives each single caller
	cancel   context.CancelFunc
	waiting  int
	done     chan struct{}
	replicas []alerts.Replica // set before done is closed
}

// Look polls all replicas at the same time, within twice the timeout, and returns the answer of
// each, in the order of the URLs and then of the addresses. Failures are in the entries, and the
// result is never empty. All requests are sent after the call. Concurrent callers share one poll; a
// call during another poll also waits for its end. If ctx ends first, each URL has one entry with
// ctx's error.
func (c *Client) Look(ctx context.Context) []alerts.Replica {
	r := c.join(ctx)
	select {
	case <-r.done:
		return r.replicas
	case <-ctx.Done():
		c.leave(r)
		replicas := c.unasked(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // a cancelled caller shows nothing about the replicas
			c.up.set(replicas)
		}
		return replicas
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

func newRound(ctx context.Context) *round {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &round{ctx: ctx, cancel: cancel, waiting: 1, done: make(chan struct{})}
}

// leave stops the round after its last caller.
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
	case c.rounds.running: // do not wait for the end: the round may hang in spite of its context
		c.advance()
	}
}

func (c *Client) run(r *round) {
	defer r.cancel()
	r.replicas = c.askAll(r.ctx)
	close(r.done)

	c.rounds.mu.Lock()
	defer c.rounds.mu.Unlock()
	if c.rounds.running == r {
		c.advance()
	}
}

// The caller holds the lock.
func (c *Client) advance() {
	c.rounds.running, c.rounds.next = c.rounds.next, nil
	if c.rounds.running != nil {
		go c.run(c.rounds.running)
	}
}

// unasked is for a caller whose ctx has ended: one entry for every URL, with ctx's error.
func (c *Client) unasked(ctx context.Context) (replicas []alerts.Replica) {
	for _, e := range c.endpoints {
		replicas = append(replicas, alerts.Replica{
			URL: e.String(),
			Err: fmt.Errorf("waiting for Alertmanager %s: %w", e, context.Cause(ctx)),
		})
	}
	return replicas
}
