package ui

import (
	"maps"
	"sync"
	"time"

	"drydock.dev/drydock/internal/actions"
)

// These are the time limits of a write. Each is longer than the one before: first the API server
// gives up (actions.ServerWithin), then this program, then the page's script (waits in
// static/words.js), and last the connection. A browser may repeat a write by itself if the
// connection ends without an answer.
const (
	writeWithin      = 45 * time.Second
	connectionWithin = time.Minute
)

// click is one request of a person: a successful try that may be written once.
type click struct {
	node, word string
	params     actions.Params
	subject    actions.Subject
	at         time.Time
	taken      bool
	// done is closed when outcome is set.
	done    chan struct{}
	outcome outcome
}

// outcome is the result of a write: a code, and the body of the answer.
type outcome struct {
	code int
	body any
}

const (
	// maxClicks bounds the stored clicks. A click that was dropped writes nothing.
	maxClicks = 256
	// clickLasts is how long after a try the click may be written.
	clickLasts = 10 * time.Minute
)

// clicks are the stored clicks, by their numbers: those that may be written, and those that were.
type clicks struct {
	mu    sync.Mutex
	all   map[string]*click
	order []string
}

// offer stores the click under a number that cannot be guessed.
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

// take finds the click of this try. first: it was not taken before, and the caller writes it. Nil:
// there is none.
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

// end sets the outcome for all requests with the same number.
func (k *click) end(o outcome) {
	k.outcome = o
	close(k.done)
}
