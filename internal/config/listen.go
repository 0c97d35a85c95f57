package config

import (
	"net"
	"strconv"

	"drydock.dev/drydock/internal/config/section"
)

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

func loopback(address string) bool {
	host, _, ok := splitListen(address)
	return ok && section.Loopback(host)
}

// distinctListeners refuses two servers with the same address: the second could not start.
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

// collide ignores port 0, which means any free port.
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
