package probe

import "net"

// headers is the length of the UDP and IPv6 headers, which are longer than those of IPv4.
const headers = 48

// Fitting returns the payload, or a shorter length if an interface of this network namespace has a
// smaller MTU. A question that is too long to be sent would report every peer as lost.
func Fitting(payload int) (int, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return 0, err
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 || !global(i) {
			continue
		}
		if room := i.MTU - headers; room < payload {
			payload = max(room, headerSize)
		}
	}
	return payload, nil
}

func global(i net.Interface) bool {
	addresses, err := i.Addrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return true
		}
	}
	return false
}
