package alertmanager

import (
	"context"
	"fmt"
	"sync"

	"drydock.dev/drydock/internal/replicas"
	"drydock.dev/drydock/remediations/alerts"
)

// The replicas of the last poll. The next poll uses their connections again.
type knownReplicas struct {
	mu   sync.Mutex
	byID map[string]*replica
}

// A replica of the last poll is returned again, so that its connections are reused.
func (k *knownReplicas) get(e *replicas.Endpoint, address string, prepare func() (*replica, error)) (*replica, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := e.String() + " " + address
	if r := k.byID[id]; r != nil {
		return r, nil
	}
	r, err := prepare()
	if err != nil {
		return nil, err
	}
	if k.byID == nil {
		k.byID = map[string]*replica{}
	}
	k.byID[id] = r
	return r, nil
}

// keepOnly closes the connections of all others.
func (k *knownReplicas) keepOnly(current map[*replica]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, r := range k.byID {
		if !current[r] {
			r.at.Close()
			delete(k.byID, id)
		}
	}
}

// Either replica is the replica to query, or failed is the finished entry with the error.
type seat struct {
	replica *replica
	failed  alerts.Replica
}

// seats resolves every host name and returns the replicas to query, in a stable order. An address
// of two URLs is queried once, with the settings of the first.
func (c *Client) seats(ctx context.Context) []seat {
	type lookup struct {
		addresses []string
		err       error
	}
	found := make([]lookup, len(c.endpoints))
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var wg sync.WaitGroup
	for i, e := range c.endpoints {
		wg.Go(func() { found[i].addresses, found[i].err = e.Addresses(ctx) })
	}
	wg.Wait()

	var seats []seat
	taken := map[string]bool{}
	for i, e := range c.endpoints {
		if found[i].err != nil {
			seats = append(seats, seat{failed: alerts.Replica{URL: e.String(), Err: found[i].err}})
			continue
		}
		for _, address := range found[i].addresses {
			url := e.At(address)
			if taken[url] {
				continue
			}
			taken[url] = true
			seats = append(seats, c.seatAt(e, address, url))
		}
	}
	return seats
}

func (c *Client) seatAt(e *replicas.Endpoint, address, url string) seat {
	r, err := c.known.get(e, address, func() (*replica, error) { return newReplica(e, address, c.timeout) })
	if err != nil {
		return seat{failed: alerts.Replica{URL: url, Err: fmt.Errorf("preparing to ask Alertmanager %s: %w", url, err)}}
	}
	return seat{replica: r}
}

func (c *Client) askAll(ctx context.Context) []alerts.Replica {
	seats := c.seats(ctx)
	said := make([]alerts.Replica, len(seats))
	current := map[*replica]bool{}
	var wg sync.WaitGroup
	for i, seat := range seats {
		if seat.replica == nil {
			said[i] = seat.failed
			continue
		}
		current[seat.replica] = true
		wg.Go(func() { said[i] = seat.replica.ask(ctx, c.interests) })
	}
	wg.Wait()
	// If the context was cancelled, no caller waits any more. The errors of this poll then come from
	// the cancellation and show nothing about the replicas.
	if ctx.Err() == nil {
		c.known.keepOnly(current)
		c.up.set(said)
	}
	return said
}
