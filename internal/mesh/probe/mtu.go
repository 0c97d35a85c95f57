package probe

import "net"

// headers are those of UDP and IPv6, the longest that a payload has before it.
const headers = 48

// Fitting is the payload, or less where an interface of this network namespace carries less in one packet: a question
// that could never leave would say of every peer that it is lost.
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
			payload = max(room, HeaderSize)
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
