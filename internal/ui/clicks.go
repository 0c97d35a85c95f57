package ui

import (
	"maps"
	"sync"
	"time"

	"drydock.dev/drydock/internal/actions"
)

// Each limit in this list must be longer than the one before: actions.ServerWithin (the API
// server), writeWithin (this program), waits in static/words.js (the page's script),
// connectionWithin. The connection's is the longest, because a browser may repeat a write by itself
// if the connection ends without an answer.
const (
	writeWithin      = 45 * time.Second
	connectionWithin = time.Minute
)

// click is an action that succeeded as a dry run, and that the person may now confirm. It is
// written at most once.
type click struct {
	node, word string
	params     actions.Params
	subject    actions.Subject
	at         time.Time
	taken      bool
	done       chan struct{}
	outcome    outcome
}

type outcome struct {
	code int
	body any
}

const (
	// A new click replaces the oldest one, whose action can then no longer be written.
	maxClicks = 256
	// clickLasts is how long after its dry run a click may be written.
	clickLasts = 10 * time.Minute
)

// clicks are stored by their numbers, also after their writes. So a repeated request gets the
// click's outcome and writes nothing.
type clicks struct {
	mu    sync.Mutex
	all   map[string]*click
	order []string
}

// offer returns a number that cannot be guessed.
func (c *clicks) offer(of *click) string {
	number := NewToken()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*click{}
	}
	if len(c.order) == maxClicks {
		delete(c.all, c.order[0])
		c.order = c.order[1:]
	}
	of.done = make(chan struct{})
	c.all[number], c.order = of, append(c.order, number)
	return number
}

// take returns nil if there is no such click, if it has expired, or if it is for another node,
// action or other parameters. first is true for the first call with the number. Only that caller
// may write.
func (c *clicks) take(number, node, word string, params actions.Params, now time.Time) (of *click, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of = c.all[number]
	if of == nil || of.node != node || of.word != word || !maps.Equal(of.params, params) || !of.taken && now.Sub(of.at) > clickLasts {
		return nil, false
	}
	first = !of.taken
	of.taken = true
	return of, first
}

// end answers all requests with the click's number, which wait for it.
func (k *click) end(o outcome) {
	k.outcome = o
	close(k.done)
}
