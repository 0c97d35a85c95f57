package hosts

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxPing is the limit for a keepalive on an idle connection. A machine that has lost power never
// answers.
const maxPing = 3 * time.Second

type line struct {
	client *Client
	name   string
	// users is the number of commands that hold turn or wait for it. The client's mutex guards it.
	users int
	// Only the command that holds turn may use conn and idle.
	turn *semaphore.Weighted
	conn *connection
	idle *time.Timer
}

// take waits until no other command uses the host. The caller must call give afterwards.
func (c *Client) take(ctx context.Context, h Host) (*line, error) {
	c.mu.Lock()
	l := c.lines[h.Name]
	if l == nil {
		l = &line{client: c, name: h.Name, turn: semaphore.NewWeighted(1)}
		c.lines[h.Name] = l
	}
	l.users++
	c.mu.Unlock()
	if err := l.turn.Acquire(ctx, 1); err != nil {
		l.leave()
		return nil, kinded(ErrUnreachable, err, "an earlier command on the host did not end in time")
	}
	if l.idle != nil {
		l.idle.Stop()
	}
	return l, nil
}

func (l *line) give() {
	if l.conn != nil {
		l.idle = time.AfterFunc(l.client.o.Keep, l.hangUpIfIdle)
	}
	l.turn.Release(1)
	l.leave()
}

func (l *line) leave() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	l.users--
	if l.users > 0 || !l.turn.TryAcquire(1) {
		return
	}
	if l.conn == nil {
		delete(l.client.lines, l.name)
	}
	l.turn.Release(1)
}

func (l *line) hangUpIfIdle() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	if l.users > 0 || l.client.lines[l.name] != l || !l.turn.TryAcquire(1) {
		return
	}
	l.hangUp()
	delete(l.client.lines, l.name)
	l.turn.Release(1)
}

func (l *line) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// open replaces a connection that does not answer, whose address the host no longer has, or whose
// key or known_hosts file has changed.
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
		return false // the caller closes the connection, which ends the request
	}
}
