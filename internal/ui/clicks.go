package ui

import (
	"maps"
	"sync"
	"time"

	"drydock.dev/drydock/internal/actions"
)

// How long a write may take. Each time is longer than the one before: the API server gives up first (actions.ServerWithin), then this
// program, then the page's script (waits in static/words.js), and last the connection. A browser whose connection ends without an answer
// may send the write again by itself.
const (
	writeWithin      = 45 * time.Second
	connectionWithin = time.Minute
)

// click is one asking of a person: what was tried, and may be written once.
type click struct {
	node, word string
	params     actions.Params
	subject    actions.Subject
	at         time.Time
	taken      bool
	// done is closed when outcome is known.
	done    chan struct{}
	outcome outcome
}

// outcome is how a write ended: a code, and what is answered with it.
type outcome struct {
	code int
	body any
}

const (
	// maxClicks bounds what is remembered. A click that was forgotten writes nothing.
	maxClicks = 256
	// clickLasts is how long after a try it may be written.
	clickLasts = 10 * time.Minute
)

// clicks are those that may be taken, and those that were, by their numbers.
type clicks struct {
	mu    sync.Mutex
	all   map[string]*click
	order []string
}

// offer gives the click a number that nobody can guess.
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

// take finds the click that was tried for this. first: it was not taken before, and the caller writes it. Nil: there is none.
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

// end makes the outcome known to who asks with the same number.
func (k *click) end(o outcome) {
	k.outcome = o
	close(k.done)
}
