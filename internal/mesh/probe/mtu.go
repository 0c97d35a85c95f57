package probe

import "net"

// headers is the total length in bytes of the UDP and IPv6 headers. With IPv4 they are shorter.
const headers = 48

// Fitting returns payload, or a smaller number of bytes if an interface of this network namespace
// has a small MTU. Packets are never fragmented. So a longer question could not be sent, and no
// probe over UDP would have a result.
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
