package config

import (
	"net"
	"strconv"

	"drydock.dev/drydock/internal/config/section"
)

// listen reads an address to listen on: a host, which may be empty, and a numeric port.
func (b *builder) listen(p pointer, address string) string {
	if _, _, ok := splitListen(address); !ok {
		b.Fault(p, "%s is not an address to listen on; write for example :9095 or 127.0.0.1:9095", show(address))
	}
	return address
}

func splitListen(address string) (host string, port uint64, ok bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, false
	}
	port, err = strconv.ParseUint(text, 10, 16)
	return host, port, err == nil
}

// loopback reports whether only this machine can reach the address.
func loopback(address string) bool {
	host, _, ok := splitListen(address)
	return ok && section.Loopback(host)
}

// distinctListeners adds a fault if two servers have the same address, because the second could not
// start.
func (b *builder) distinctListeners() {
	type server struct {
		at      pointer
		address string
	}
	servers := []server{
		{pointer{"receiver", "listen"}, b.config.Receiver.Listen},
		{pointer{"metrics", "listen"}, b.config.Metrics.Listen},
		{pointer{"health", "listen"}, b.config.HealthListen},
	}
	if w := b.config.Webhook; w != nil {
		servers = append(servers, server{pointer{"webhook", "listen"}, w.Listen})
	}
	for i, later := range servers {
		for _, earlier := range servers[:i] {
			if collide(earlier.address, later.address) && !b.Faulty(earlier.at) {
				b.Fault(later.at, "%s is already the address of %s.%s; write another port", show(later.address), earlier.at[0], earlier.at[1])
			}
		}
	}
}

// collide reports whether two addresses conflict. Two addresses with port 0 do not, because port 0
// means any free port.
func collide(a, b string) bool {
	hostA, portA, okA := splitListen(a)
	hostB, portB, okB := splitListen(b)
	if !okA || !okB || portA != portB || portA == 0 {
		return false
	}
	return hostA == hostB || everyAddress(hostA) || everyAddress(hostB)
}

func everyAddress(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
