package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Outcome is what a probe shows about forwarding.
type Outcome string

// These are all outcomes.
const (
	// OK: the short and the long question were both answered.
	OK Outcome = "ok"
	// Lost: a question vanished, or a router reported that there is no route.
	Lost Outcome = "lost"
	// NoResult: the probe shows nothing about forwarding. The far end was reached and no agent of
	// this mesh answers there, or the fault is on this side.
	NoResult Outcome = "no_result"
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{OK, Lost, NoResult} }

// Result is the result of a probe.
type Result struct {
	Outcome Outcome
	// Took is the duration of the whole probe. Zero unless OK.
	Took time.Duration
	// Why is the reason for any outcome but OK.
	Why error
}

const (
	// DefaultTimeout is how long a probe may take.
	DefaultTimeout = 2 * time.Second
	// DefaultPayload is the length of the long question. With the headers of UDP and IPv6, the
	// packet has 1348 bytes, which VXLAN within WireGuard carries over paths of 1500.
	DefaultPayload = 1300
	// overslept is how much later than its timeout a probe may end. After that, this process was
	// stopped or starved, and an answer may have arrived unread.
	overslept = 500 * time.Millisecond
)

// Client makes probes. Its zero Timeout and Payload mean the defaults.
type Client struct {
	// Node is the name of the node that probes.
	Node    string
	Keys    func() []Key
	Now     func() time.Time
	Rand    io.Reader // source of nonces
	Timeout time.Duration
	Payload int
}

// Probe probes the agent of a node over a new flow. It takes at most Timeout.
func (c Client) Probe(ctx context.Context, p Proto, to netip.AddrPort, node string) Result {
	limit := c.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	ask := c.overTCP
	if p == UDP {
		ask = c.overUDP
	}
	err := ask(timed, to, fingerprint(node))
	switch {
	case err == nil:
		return Result{Outcome: OK, Took: time.Since(began)}
	case ctx.Err() != nil:
		return Result{Outcome: NoResult, Why: ctx.Err()}
	case time.Since(began) > limit+overslept:
		return Result{Outcome: NoResult, Why: fmt.Errorf("%w: %w", errOverslept, err)}
	case inconclusive(err):
		return Result{Outcome: NoResult, Why: err}
	}
	return Result{Outcome: Lost, Why: err}
}

var (
	errAnother = errors.New("another node's agent answered")
	errStrange = errors.New("something else than an agent of ours answered")
	// errMute: the agent hangs. An agent with another key, or that finds this clock wrong, hangs
	// up.
	errMute = errors.New("a connection was made, and no agent answered over it")
)

// Weigh returns what two simultaneous probes of one agent show together. An agent with another key
// or clock, or under overload, is silent over UDP as if all packets were lost. Over TCP its kernel
// still accepts the connection, and then the agent hangs up or hangs. So if TCP showed nothing,
// silence over UDP shows nothing either. A signed refusal would be clearer. But an agent would have
// to send it for questions of any age, and an eavesdropper could replay such a question as often as
// it likes.
func Weigh(tcp, udp Result) (Result, Result) {
	if tcp.Outcome == NoResult && udp.Outcome == Lost {
		udp = Result{Outcome: NoResult, Why: fmt.Errorf("%w; and over TCP nothing was learnt: %w", udp.Why, tcp.Why)}
	}
	return tcp, udp
}

// inconclusive reports whether an error is not a fault of the path.
func inconclusive(err error) bool {
	for _, e := range []error{
		// The far end was reached: it refused the connection, or hung up.
		errAnother, errStrange, errMute, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE,
		// The fault is on this side.
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EMSGSIZE, errNoNonce, errUnsent,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

var (
	errNoNonce   = errors.New("no random bytes are to be had")
	errOverslept = errors.New("this process did not run for a while")
	// errUnsent: this process got too little processor time, and the timeout passed before the
	// datagram was sent.
	errUnsent = errors.New("the time had ended before the question was sent")
)

// sizes returns the lengths of the questions.
func (c Client) sizes() []int {
	if c.Payload == 0 {
		return []int{HeaderSize, DefaultPayload}
	}
	return []int{HeaderSize, min(max(c.Payload, HeaderSize), MaxSize)}
}

// question makes a question of this length, signed with the first key.
func (c Client) question(p Proto, length int) (message, []byte, error) {
	q := message{kind: question, proto: p, length: length, at: c.Now(), node: fingerprint(c.Node)}
	if _, err := io.ReadFull(c.Rand, q.nonce[:]); err != nil {
		return message{}, nil, fmt.Errorf("%w: %w", errNoNonce, err)
	}
	return q, q.seal(c.Keys()[0]), nil
}

// connect opens a new socket, with a source port that the kernel chooses. The socket is closed when
// ctx ends.
func connect(ctx context.Context, network string, to netip.AddrPort) (c net.Conn, release func(), err error) {
	d := net.Dialer{KeepAlive: -1}
	if network == "udp" {
		d.Control = dontFragment
	}
	if c, err = d.DialContext(ctx, network, to.String()); err != nil {
		return nil, nil, err
	}
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	return c, func() { stop(); _ = c.Close() }, nil
}

// overTCP asks one question after the other, so that each is a segment of its own. If the short one
// gets no answer although the far end's kernel acknowledged it, the flow works both ways and the
// agent is silent.
func (c Client) overTCP(ctx context.Context, to netip.AddrPort, node [8]byte) error {
	conn, release, err := connect(ctx, "tcp", to)
	if err != nil {
		return err
	}
	defer release()
	for i, size := range c.sizes() {
		q, b, err := c.question(TCP, size)
		if err != nil {
			return err
		}
		if _, err := conn.Write(b); err != nil {
			return fmt.Errorf("sending %d bytes: %w", size, err)
		}
		if n, err := io.ReadFull(conn, b); err != nil {
			var timeout net.Error
			if i == 0 && n == 0 && errors.As(err, &timeout) && timeout.Timeout() && acknowledged(conn) {
				err = fmt.Errorf("%w: %w", errMute, err)
			}
			return fmt.Errorf("waiting for %d bytes: %w", size, err)
		}
		a, _, err := openWhole(b, c.Keys())
		switch {
		case err != nil || !a.answers(q):
			return errStrange
		case a.node != node:
			return errAnother
		}
	}
	return nil
}

// overUDP asks both questions at once. It repeats an unanswered question after a third of the time,
// as TCP does by itself: one lost datagram shows little.
func (c Client) overUDP(ctx context.Context, to netip.AddrPort, node [8]byte) error {
	var timeout net.Error
	conn, release, err := connect(ctx, "udp", to)
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errUnsent
	}
	if err != nil {
		return err
	}
	defer release()
	deadline, _ := ctx.Deadline()
	begin := time.Now()
	again := begin.Add(deadline.Sub(begin) / 3)
	waiting := map[int]bool{}
	for _, size := range c.sizes() {
		waiting[size] = true
	}
	var asked []message
	send := func() error {
		for size := range waiting {
			q, b, err := c.question(UDP, size)
			if err != nil {
				return err
			}
			asked = append(asked, q)
			if _, err := conn.Write(b); errors.As(err, &timeout) && timeout.Timeout() {
				return errUnsent
			} else if err != nil {
				return fmt.Errorf("sending %d bytes: %w", size, err)
			}
		}
		return nil
	}
	if err := send(); err != nil {
		return err
	}
	buffer := make([]byte, MaxSize+1)
	for resent := false; len(waiting) > 0; {
		until := deadline
		if !resent {
			until = again
		}
		if err := conn.SetReadDeadline(until); err != nil {
			return err
		}
		if ctx.Err() != nil { // SetReadDeadline may have undone the effect of ctx
			return ctx.Err()
		}
		n, err := conn.Read(buffer)
		if errors.As(err, &timeout) && timeout.Timeout() && !resent {
			resent = true
			if err := send(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for %d of %d answers: %w", len(waiting), len(c.sizes()), err)
		}
		a, _, err := openWhole(buffer[:n], c.Keys())
		if err != nil {
			continue // not an answer to this probe
		}
		for _, q := range asked {
			switch {
			case !a.answers(q):
			case a.node != node:
				return errAnother
			default:
				delete(waiting, q.length)
			}
		}
	}
	return nil
}
