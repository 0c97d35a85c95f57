package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"drydock.dev/drydock/remediations/providers/kit"
)

// maxOutput is in bytes. 40 journal lines fit, unless all of them have the greatest possible
// length.
const maxOutput = 1 << 20

// maxComplaint is in bytes, of a command's standard error.
const maxComplaint = 4 << 10

type answer struct {
	sent  bool
	ended bool
	code  int
	// followed is closed when the final values of ended and code are set.
	followed       chan struct{}
	stdout, stderr strings.Builder
}

// run calls may, if it is not nil, right before it sends the command. After an error, nothing
// happened if answer.sent is false. If it is true, the command's effect is unknown.
func (c *Client) run(ctx context.Context, h Host, cmd command, may func() error) (*answer, error) {
	a := &answer{}
	text, err := cmd.line()
	if err == nil {
		err = h.check()
	}
	if err != nil {
		return a, err
	}
	l, err := c.take(ctx, h)
	if err != nil {
		return a, err
	}
	defer l.give()
	if err := l.open(ctx, h); err != nil {
		return a, err
	}
	conn := l.conn
	if last := may; last != nil {
		may = func() error {
			kit.Preview(ctx, fmt.Sprintf("ssh -p %d %s@%s %s", c.o.Port, c.o.User, conn.address, text))
			return last()
		}
	}
	// The ssh library takes no context, so the connection is closed when ctx ends.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = a.execute(ctx, conn, text, may)
	if !stop() || err != nil {
		l.hangUp() // the connection is in an unknown state
	}
	if a.followed != nil {
		<-a.followed
	}
	if err != nil && ctx.Err() != nil {
		err = kinded(ErrUnreachable, ctx.Err(), "no complete answer came in time (%v)", err)
	}
	return a, err
}

// withheld wraps the error of mayStill: the command was not sent.
type withheld struct{ error }

func (w withheld) Unwrap() error { return w.error }

func (a *answer) execute(ctx context.Context, conn *connection, text string, may func() error) error {
	channel, requests, err := conn.OpenChannel("session", nil)
	if err != nil {
		return kinded(ErrUnreachable, err, "sshd at %s opens no session", conn.address)
	}
	defer func() { _ = channel.Close() }()
	a.followed = make(chan struct{})
	go func() {
		defer close(a.followed)
		a.follow(requests)
	}()
	if may != nil {
		if err := may(); err != nil {
			return withheld{err}
		}
	}
	if err := ctx.Err(); err != nil {
		return kinded(ErrUnreachable, err, "the command was not sent")
	}
	a.sent = true
	ok, err := channel.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{text}))
	if err != nil {
		return kinded(ErrUnreachable, err, "the connection to %s was cut after the command was sent", conn.address)
	}
	if !ok {
		a.sent = false
		return kinded(errDenied, nil, "sshd at %s executes no command; check the user's authorized_keys and shell", conn.address)
	}
	_ = channel.CloseWrite()
	if err := a.read(channel, conn); err != nil {
		return err
	}
	<-a.followed
	if !a.ended {
		return kinded(ErrUnreachable, nil, "the connection to %s was cut before the command ended", conn.address)
	}
	return nil
}

func (a *answer) follow(requests <-chan *ssh.Request) {
	for r := range requests {
		if r.Type == "exit-status" {
			var status struct{ Code uint32 }
			if ssh.Unmarshal(r.Payload, &status) == nil {
				a.ended, a.code = true, int(status.Code&0xff)
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

var errTooMuch = fmt.Errorf("the command printed more than %d bytes; check the user's shell and profile on the host", maxOutput)

// read keeps only the beginning of the standard error. It returns an error if the standard output
// is too long.
func (a *answer) read(channel ssh.Channel, conn *connection) error {
	var both sync.WaitGroup
	var tooMuch [2]error
	for i, s := range []struct {
		from io.Reader
		to   *strings.Builder
		keep int64
	}{{channel, &a.stdout, maxOutput}, {channel.Stderr(), &a.stderr, maxComplaint}} {
		both.Go(func() {
			_, err := io.CopyN(s.to, s.from, s.keep)
			if err != nil {
				return // the output ended or was cut; the exit code shows which
			}
			if n, _ := io.CopyN(io.Discard, s.from, maxOutput); n == maxOutput || (n > 0 && s.keep == maxOutput) {
				tooMuch[i] = errTooMuch
				_ = conn.Close() // only this stops a command with endless output
			}
		})
	}
	both.Wait()
	return errors.Join(tooMuch[:]...)
}

// sudo runs the command after other messages, for example after "unable to resolve host", so only
// these prove a refusal.
var sudoDenied = regexp.MustCompile(`(?m)^(?:sudo: .*(?:a password is required|interactive authentication is required|a terminal is required|no tty present|` +
	`must have a tty|no valid sudoers sources found|must be owned by uid 0 and have the setuid bit set|: command not found)|` +
	`Sorry, user \S+ (?:is not allowed to execute|may not run sudo) |\S+ is not (?:in the sudoers file|allowed to run sudo on ))`)

// Each of these messages of drydock-host, systemd-run and polkit shows that the command did
// nothing.
var (
	bootedSince  = regexp.MustCompile(`drydock-host: booted since`)
	inhibited    = regexp.MustCompile(`drydock-host: inhibited`)
	refused      = regexp.MustCompile(`drydock-host: refused`)
	unitExists   = regexp.MustCompile(`Unit \S+ (?:was already loaded or has a fragment file|already exists)`)
	polkitDenied = regexp.MustCompile(`Access denied|nteractive authentication required`)
)

func (a *answer) failure() error {
	if a.code == 0 {
		return nil
	}
	all := a.stderr.String() // the host's shell may print much before the command prints its message
	said := clip(lastLines(all, maxText))
	says := func(this *regexp.Regexp) bool {
		at := this.FindStringIndex(all)
		if at != nil {
			said = clip(all[strings.LastIndex(all[:at[0]], "\n")+1:])
		}
		return at != nil
	}
	switch {
	case says(bootedSince):
		return kinded(ErrBooted, nil, "the host has booted since the decision, so it is not rebooted again: %s", said)
	case says(inhibited):
		return kinded(errInhibited, nil, "a systemd inhibitor blocks the reboot: %s; see systemd-inhibit --list on the host", said)
	case says(unitExists):
		return &busyError{text: "systemd refuses to do this twice: the restart or reboot is in progress, or was done a moment ago: " + said}
	case says(refused):
		return kinded(errDenied, nil, "drydock-host on the host refuses the command: %s; compare the units in it, and its reboot=, with providers.hosts", said)
	case says(sudoDenied), says(polkitDenied):
		return kinded(errDenied, nil, "the host does not allow the command as root: %s; check its sudoers", said)
	}
	return fmt.Errorf("the command ended with exit code %d: %s", a.code, said)
}
