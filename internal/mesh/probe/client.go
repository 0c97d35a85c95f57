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

// Outcome is what a probe shows about the forwarding of packets.
type Outcome string

const (
	// OK means that the agent answered both the short and the long question.
	OK Outcome = "ok"
	// Lost means that a question got no answer, or a router reported that there is no route.
	Lost Outcome = "lost"
	// NoResult means that the probe shows nothing about forwarding. Either the other side was
	// reached but no agent of this mesh answered, or the fault is on this side.
	NoResult Outcome = "no_result"
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{OK, Lost, NoResult} }

// Result is the result of a probe.
type Result struct {
	Outcome Outcome
	// Took is the duration of the whole probe if the outcome is OK.
	Took time.Duration
	Why  error
}

const (
	defaultTimeout = 2 * time.Second
	// DefaultPayload is the length of the long question in bytes. With UDP and IPv6 headers the
	// packet has 1348 bytes. VXLAN within WireGuard carries a packet of this size over a path with
	// an MTU of 1500.
	DefaultPayload = 1300
	// If a probe ends later than this after its timeout, this process was stopped or got no CPU
	// time. An unread answer may then have arrived.
	overslept = 500 * time.Millisecond
)

// Client makes probes. Zero values of Timeout and Payload mean the defaults.
type Client struct {
	Node    string
	Keys    func() []Key
	Now     func() time.Time
	Rand    io.Reader // the source of nonces
	Timeout time.Duration
	Payload int
}

// Probe probes the agent on a node over a new flow, for at most Timeout.
func (c Client) Probe(ctx context.Context, p Proto, to netip.AddrPort, node string) Result {
	limit := c.Timeout
	if limit == 0 {
		limit = defaultTimeout
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
	errStrange = errors.New("the peer is not a drydock-agent, or has another key")
	// errMute means that the agent hangs: its kernel acknowledged the question, but no answer came.
	// An agent with another key, or with a wrong clock, would close the connection.
	errMute = errors.New("a connection was made, but no agent answered on it")
)

// Weigh returns the final results of two simultaneous probes of one agent. An agent with another
// key, with a wrong clock or with too many requests does not answer over UDP. This looks as if all
// packets were lost. Over TCP, the kernel of the agent's node still accepts the connection, and the
// agent then closes the connection or hangs. So if the probe over TCP gave no result, missing
// answers over UDP give no result either.
//
// The agent does not send a signed refusal. It would have to send refusals to old questions, too.
// An eavesdropper could then replay an old question any number of times.
func Weigh(tcp, udp Result) (Result, Result) {
	if tcp.Outcome == NoResult && udp.Outcome == Lost {
		udp = Result{Outcome: NoResult, Why: fmt.Errorf("%w; and the probe over TCP gave no result: %w", udp.Why, tcp.Why)}
	}
	return tcp, udp
}

func inconclusive(err error) bool {
	for _, e := range []error{
		// The other side was reached: it refused or closed the connection, or another program
		// answered.
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
	errNoNonce   = errors.New("reading random bytes failed")
	errOverslept = errors.New("this process did not run for a while")
	// errUnsent means that this process got too little CPU time.
	errUnsent = errors.New("the time limit passed before the question was sent")
)

func (c Client) sizes() []int {
	if c.Payload == 0 {
		return []int{headerSize, DefaultPayload}
	}
	return []int{headerSize, min(max(c.Payload, headerSize), MaxSize)}
}

// question is length bytes long, and signed with the first of the client's keys.
func (c Client) question(p Proto, length int) (message, []byte, error) {
	q := message{kind: question, proto: p, length: length, at: c.Now(), node: fingerprint(c.Node)}
	if _, err := io.ReadFull(c.Rand, q.nonce[:]); err != nil {
		return message{}, nil, fmt.Errorf("%w: %w", errNoNonce, err)
	}
	return q, q.seal(c.Keys()[0]), nil
}

// The kernel chooses the source port. When ctx has ended, each read and write fails immediately.
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

// overTCP waits for the short question's answer before it sends the long one, so each is a TCP
// segment of its own. The error is errMute if the other side's kernel acknowledges the short
// question but no answer comes: the path then works in both directions.
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

// overUDP sends unanswered questions again after a third of the time limit, because the loss of one
// datagram shows little. TCP does the same by itself.
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
			continue // not a message of an agent with one of our keys
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
