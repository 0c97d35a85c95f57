package hosts

import (
	"context"
	"slices"
	"time"
)

// maxPing bounds how long a kept connection may take to show that it lives: a machine without power
// does not answer.
const maxPing = 3 * time.Second

// line is the only connection to a host, and the turn to use it.
type line struct {
	client *Client
	name   string
	// users counts those that have the turn, or wait for it; the client's lock guards it.
	users int
	// turn holds one token. Only its holder may touch the fields below.
	turn chan struct{}
	conn *connection
	idle *time.Timer
}

// take waits for the turn.
func (c *Client) take(ctx context.Context, h Host) (*line, error) {
	c.mu.Lock()
	l := c.lines[h.Name]
	if l == nil {
		l = &line{client: c, name: h.Name, turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		c.lines[h.Name] = l
	}
	l.users++
	c.mu.Unlock()
	err := ctx.Err() // select would choose at random
	if err == nil {
		select {
		case <-l.turn:
			if l.idle != nil {
				l.idle.Stop()
			}
			return l, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	l.leave()
	return nil, kinded(ErrUnreachable, err, "an earlier command on it did not end in time")
}

// give ends the turn. An open connection is kept for a while.
func (l *line) give() {
	if l.conn != nil {
		l.idle = time.AfterFunc(l.client.o.Keep, l.hangUpIfIdle)
	}
	l.turn <- struct{}{}
	l.leave()
}

// leave forgets a line without users and without a connection.
func (l *line) leave() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	l.users--
	if l.users > 0 {
		return
	}
	select {
	case <-l.turn:
		if l.conn == nil {
			delete(l.client.lines, l.name)
		}
		l.turn <- struct{}{}
	default:
	}
}

func (l *line) hangUpIfIdle() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	if l.users > 0 || l.client.lines[l.name] != l {
		return
	}
	select {
	case <-l.turn:
		l.hangUp()
		delete(l.client.lines, l.name)
		l.turn <- struct{}{}
	default:
	}
}

func (l *line) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// open makes sure that there is a live connection to the host as it is now: to one of its
// addresses, made with the present files.
func (l *line) open(ctx context.Context, h Host) error {
	if l.conn != nil && !l.good(ctx, h) {
		l.hangUp()
	}
	if l.conn != nil {
		return nil
	}
	conn, err := l.client.dial(ctx, h)
	l.conn = conn
	return err
}

func (l *line) good(ctx context.Context, h Host) bool {
	if !slices.Contains(h.Addresses, l.conn.address) {
		return false
	}
	now, err := readIdentity(l.client.o.KeyFile, l.client.o.KnownHostsFile)
	if err != nil || now.digest != l.conn.identity.digest {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, maxPing)
	defer cancel()
	answered := make(chan error, 1)
	conn := l.conn
	go func() {
		_, _, err := conn.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-ctx.Done():
		return false // the connection is closed now, which ends the request
	}
}
