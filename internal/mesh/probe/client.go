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

// Outcome is what a probe says of forwarding.
type Outcome string

// All outcomes there are.
const (
	// OK: the short and the long question both came back.
	OK Outcome = "ok"
	// Lost: one of them vanished, or a router said that it leads nowhere.
	Lost Outcome = "lost"
	// NoWord: nothing was learnt. The far end was reached and has no agent that answers us, or the trouble is our own.
	NoWord Outcome = "no_word"
)

// Outcomes lists them.
func Outcomes() []Outcome { return []Outcome{OK, Lost, NoWord} }

// Word is what a probe learnt.
type Word struct {
	Outcome Outcome
	// Took is the time of the whole probe; zero unless OK.
	Took time.Duration
	// Why it is not OK.
	Why error
}

const (
	// DefaultTimeout is what a probe may take.
	DefaultTimeout = 2 * time.Second
	// DefaultPayload is the length of the long question. With the headers of UDP and IPv6 it makes a packet of 1348 bytes,
	// which VXLAN within WireGuard carries over paths of 1500.
	DefaultPayload = 1300
	// overslept is how much later than the timeout a probe may end. Beyond it this process was stopped or starved, and what
	// it missed may have come.
	overslept = 500 * time.Millisecond
)

// Client asks. Its zero Timeout and Payload are the defaults.
type Client struct {
	// Node is the name of the node that asks.
	Node    string
	Keys    func() []Key
	Now     func() time.Time
	Rand    io.Reader // of nonces
	Timeout time.Duration
	Payload int
}

// Probe asks the agent of a node over a flow of its own. It takes Timeout at most.
func (c Client) Probe(ctx context.Context, p Proto, to netip.AddrPort, node string) Word {
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
		return Word{Outcome: OK, Took: time.Since(began)}
	case ctx.Err() != nil:
		return Word{Outcome: NoWord, Why: ctx.Err()}
	case time.Since(began) > limit+overslept:
		return Word{Outcome: NoWord, Why: fmt.Errorf("%w: %w", errOverslept, err)}
	case noWord(err):
		return Word{Outcome: NoWord, Why: err}
	}
	return Word{Outcome: Lost, Why: err}
}

var (
	errAnother = errors.New("another node's agent answered")
	errStrange = errors.New("something else than an agent of ours answered")
	// errMute: it hangs. One that has another key, or takes our clock for wrong, hangs up.
	errMute = errors.New("a connection was made, and no agent answered over it")
)

// Weigh says what two probes of one agent, made at one time, say together. Whoever has another key or another clock, or
// too much to do, is silent over UDP as if all were lost; over TCP its kernel still lets us in, and it hangs up or hangs.
// So where TCP was no word UDP's silence is none either. A signed word about it would be clearer, and would have to be
// given to questions of any age, of which whoever has overheard one could have as many answered as he likes.
func Weigh(tcp, udp Word) (Word, Word) {
	if tcp.Outcome == NoWord && udp.Outcome == Lost {
		udp = Word{Outcome: NoWord, Why: fmt.Errorf("%w; and over TCP nothing was learnt: %w", udp.Why, tcp.Why)}
	}
	return tcp, udp
}

// noWord says that an error is none of the path's.
func noWord(err error) bool {
	for _, e := range []error{
		// The far end was reached: by its own word nobody listens, or it hung up.
		errAnother, errStrange, errMute, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE,
		// The trouble is our own.
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
	// errUnsent: this process had too little of the processor, and the time was over before the datagram was on its way.
	errUnsent = errors.New("the time had ended before the question was sent")
)

// sizes are those of the questions.
func (c Client) sizes() []int {
	if c.Payload == 0 {
		return []int{HeaderSize, DefaultPayload}
	}
	return []int{HeaderSize, min(max(c.Payload, HeaderSize), MaxSize)}
}

// question makes one of the length; it is signed with the first key.
func (c Client) question(p Proto, length int) (message, []byte, error) {
	q := message{kind: question, proto: p, length: length, at: c.Now(), node: fingerprint(c.Node)}
	if _, err := io.ReadFull(c.Rand, q.nonce[:]); err != nil {
		return message{}, nil, fmt.Errorf("%w: %w", errNoNonce, err)
	}
	return q, q.seal(c.Keys()[0]), nil
}

// connect opens a new socket, whose source port the kernel chooses; it is closed when ctx ends.
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

// overTCP asks one after the other, so that each is a segment of its own. Where the short one has no answer though the far
// end's kernel acknowledged it, the flow passed both ways, and what keeps silent is the agent.
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

// overUDP asks both at once, and once more for what has not come back after a third of the time, as TCP does by itself:
// one datagram that is lost says little.
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
		if ctx.Err() != nil { // SetReadDeadline may have undone what the end of ctx did
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
			continue // whatever it is, it is none of ours
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
