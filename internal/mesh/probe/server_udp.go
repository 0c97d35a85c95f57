package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// The answer to a datagram must have the datagram's local address as its source. On a machine with
// several addresses, the kernel may choose another one.
type packets struct {
	read  func(b []byte) (n int, from, to net.Addr, err error)
	write func(b []byte, from, to net.Addr) error
}

func newPackets(c net.PacketConn) (packets, error) {
	local, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		return packets{}, fmt.Errorf("a socket of UDP has the address %s", c.LocalAddr())
	}
	if local.IP.To4() != nil {
		p := ipv4.NewPacketConn(c)
		if err := p.SetControlMessage(ipv4.FlagDst, true); err != nil {
			return packets{}, fmt.Errorf("requesting the local address of IPv4 datagrams: %w", err)
		}
		return packets{
			read: func(b []byte) (int, net.Addr, net.Addr, error) {
				n, cm, from, err := p.ReadFrom(b)
				if cm == nil {
					return n, from, nil, err
				}
				return n, from, &net.IPAddr{IP: cm.Dst}, err
			},
			write: func(b []byte, from, to net.Addr) error {
				_, err := p.WriteTo(b, &ipv4.ControlMessage{Src: ip(from)}, to)
				return err
			},
		}, nil
	}
	p := ipv6.NewPacketConn(c)
	if err := p.SetControlMessage(ipv6.FlagDst, true); err != nil {
		return packets{}, fmt.Errorf("requesting the local address of IPv6 datagrams: %w", err)
	}
	return packets{
		read: func(b []byte) (int, net.Addr, net.Addr, error) {
			n, cm, from, err := p.ReadFrom(b)
			if cm == nil {
				return n, from, nil, err
			}
			return n, from, &net.IPAddr{IP: cm.Dst}, err
		},
		write: func(b []byte, from, to net.Addr) error {
			_, err := p.WriteTo(b, &ipv6.ControlMessage{Src: ip(from)}, to)
			return err
		},
	}, nil
}

func ip(a net.Addr) net.IP {
	if a, ok := a.(*net.IPAddr); ok {
		return a.IP
	}
	return nil
}

// servePackets answers datagrams one after the other, so that a flood uses at most one CPU core.
func (s *Server) servePackets(c net.PacketConn) error {
	p, err := newPackets(c)
	if err != nil {
		return err
	}
	buffer := make([]byte, MaxSize+1)
	for {
		n, from, to, err := p.read(buffer)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // the receiver of an earlier answer refused it
		}
		if err != nil {
			return err
		}
		peer, ok := from.(*net.UDPAddr)
		if !ok {
			continue
		}
		q, k, err := openWhole(buffer[:n], s.options.Keys())
		if err == nil && q.proto != UDP {
			err = errMalformed
		}
		if err != nil {
			s.count(UDP, refusal(err))
			continue
		}
		addr, _ := netip.AddrFromSlice(peer.IP)
		if a := s.answer(q, k, addr); a != nil {
			_ = p.write(a, to, from) // an answer that cannot be sent is lost, as if by the network
		}
	}
}
