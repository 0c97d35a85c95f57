package mesh

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// EchoPort is the port in every pod that returns what it receives, over TCP and UDP.
const EchoPort = 7007

// patience is a thousand times what a round trip takes, but a busy machine may take even longer. So
// a packet that must arrive is sent again, or has patienceInAll.
const (
	patience      = time.Second
	patienceInAll = time.Minute
)

func (n *Network) echo(node *Node) error {
	at := netip.AddrPortFrom(node.PodIP(), EchoPort).String()
	var stream net.Listener
	var packets net.PacketConn
	err := node.pod.do(func() (err error) {
		if stream, err = net.Listen("tcp", at); err != nil { //nolint:noctx // it does not block
			return err
		}
		packets, err = net.ListenPacket("udp", at) //nolint:noctx // it does not block
		return err
	})
	if stream != nil {
		n.atEnd(func() { _ = stream.Close() })
	}
	if err != nil {
		return fmt.Errorf("listening on %s: %w", at, err)
	}
	n.atEnd(func() { _ = packets.Close() })
	go func() {
		for {
			c, err := stream.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // the other end sees the error
			}()
		}
	}()
	go func() {
		buffer := make([]byte, 65536)
		for {
			size, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo(buffer[:size], from) // a lost packet is normal
		}
	}()
	return nil
}

// Connect opens a TCP connection from one node's pod to the EchoPort of another's.
func (n *Network) Connect(ctx context.Context, from, to string) (net.Conn, error) {
	return n.dial(ctx, from, "tcp", netip.AddrPortFrom(n.Node(to).PodIP(), EchoPort).String(), patienceInAll)
}

// Dial connects from a node's pod to any address.
func (n *Network) Dial(ctx context.Context, from, protocol, to string) (net.Conn, error) {
	return n.dial(ctx, from, protocol, to, patience)
}

func (n *Network) dial(ctx context.Context, from, protocol, to string, timeout time.Duration) (net.Conn, error) {
	var c net.Conn
	err := n.Node(from).pod.do(func() (err error) {
		d := net.Dialer{Timeout: timeout}
		c, err = d.DialContext(ctx, protocol, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connecting from the pod of %s: %w", from, err)
	}
	return c, nil
}

// Send checks the path from one node's pod to another's and back, with new flows over TCP and UDP.
// The packets are almost as large as the path allows.
func (n *Network) Send(ctx context.Context, from, to string) error {
	at := netip.AddrPortFrom(n.Node(to).PodIP(), EchoPort).String()
	for _, protocol := range []string{"tcp", "udp"} {
		c, err := n.Dial(ctx, from, protocol, at)
		if err != nil {
			return fmt.Errorf("sending to the pod of %s: %w", to, err)
		}
		err = exchange(c, patience)
		_ = c.Close() // no longer needed
		if err != nil {
			return fmt.Errorf("sending from the pod of %s to that of %s by %s: %w", from, to, protocol, err)
		}
	}
	return nil
}

// Exchange sends data on a connection to a pod's EchoPort, and waits until it comes back.
func Exchange(c net.Conn) error { return exchange(c, patienceInAll) }

func exchange(c net.Conn, timeout time.Duration) error {
	sent := make([]byte, tunnelMTU-100)
	_, _ = rand.Read(sent) // cannot fail
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := c.Write(sent); err != nil {
		return err
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if !bytes.Equal(sent, got) {
		return errors.New("something else came back")
	}
	return nil
}

// Flows waits until three new flows in a row pass from one node's pod to another's, and returns the
// time of the first. During a fault that lets old flows pass, a single new flow may pass by chance,
// because it has the outer ports of an old one.
func (n *Network) Flows(ctx context.Context, from, to string) (time.Time, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var first time.Time
	for passed := 0; ; {
		err := n.Send(ctx, from, to)
		switch {
		case err != nil:
			passed = 0
		case passed == 0:
			first, passed = time.Now(), 1
		default:
			passed++
		}
		if passed == 3 {
			return first, nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting for packets from the pod of %s to that of %s: %w (the last: %w)", from, to, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Mute returns the paths between pods that no new flow passes now, each as "from to".
func (n *Network) Mute(ctx context.Context) []string {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var mute []string
	for _, a := range n.nodes {
		for _, b := range n.nodes {
			if a == b {
				continue
			}
			wg.Go(func() {
				if n.Send(ctx, a.Name, b.Name) != nil {
					mu.Lock()
					defer mu.Unlock()
					mute = append(mute, a.Name+" "+b.Name)
				}
			})
		}
	}
	wg.Wait()
	return mute
}

// Ping sends ICMP echo requests from one node to another, over the wire, until one is answered.
func (n *Network) Ping(from, to string) error {
	for began := time.Now(); ; {
		if err := n.ping(from, to); err == nil || time.Since(began) > patienceInAll {
			return err
		}
	}
}

func (n *Network) ping(from, to string) error {
	fail := func(err error) error { return fmt.Errorf("pinging %s from %s: %w", to, from, err) }
	var c *net.IPConn
	err := n.Node(from).host.do(func() (err error) {
		c, err = net.DialIP("ip4:icmp", nil, &net.IPAddr{IP: n.Node(to).HostIP().AsSlice()})
		return err
	})
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	request := append([]byte{8, 0, 0, 0}, []byte(rand.Text())[:12]...) // an identifier, a number, and content
	sum := checksum(request)
	request[2], request[3] = byte(sum>>8), byte(sum)
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return fail(err)
	}
	if _, err := c.Write(request); err != nil {
		return fail(err)
	}
	for got := make([]byte, 1500); ; {
		size, _, err := c.ReadFrom(got) // without the IP header
		if err != nil {
			return fail(err)
		}
		if size >= len(request) && got[0] == 0 && bytes.Equal(got[4:len(request)], request[4:]) {
			return nil
		}
	}
}

// The data must have an even number of bytes.
func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i < len(data); i += 2 {
		sum += uint32(data[i])<<8 | uint32(data[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
