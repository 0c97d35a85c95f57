package receiver

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// crowd knows the connections that are open, and sees to it that those which ask for nothing keep nobody out.
//
// In a storm Alertmanager opens a connection for each group, and gives up on most of those that are not taken in time. What
// it opened it keeps, though: thousands of connections arrive on which nothing will ever be asked.
type crowd struct {
	// patience is how long a connection may be silent at first while there are many.
	patience time.Duration
	open     atomic.Int64
	// silent are the timers of those that are watched.
	silent sync.Map
}

// tooMany says that there are more connections than may be kept.
func (c *crowd) tooMany() bool { return c.open.Load() > keptConnections }

// state is an http.Server's ConnState.
func (c *crowd) state(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if c.open.Add(1); c.tooMany() {
			c.silent.Store(conn, time.AfterFunc(c.patience, func() { _ = conn.Close() }))
		}
	case http.StateActive:
		c.spoke(conn)
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
		c.spoke(conn)
	case http.StateIdle:
	}
}

func (c *crowd) spoke(conn net.Conn) {
	if timer, ok := c.silent.LoadAndDelete(conn); ok {
		timer.(*time.Timer).Stop() //nolint:forcetypeassert // nothing else is stored
	}
}
