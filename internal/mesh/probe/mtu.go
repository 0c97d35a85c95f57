package probe

import "net"

// headers is for UDP and IPv6, in bytes. IPv4 headers are shorter.
const headers = 48

// Fitting returns payload, or fewer bytes if an interface of this network namespace has a small
// MTU. Packets are never fragmented, so a longer question could not be sent.
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
