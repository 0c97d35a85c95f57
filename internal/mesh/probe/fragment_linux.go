package probe

import "syscall"

const ipv6DontFragment = 62

// dontFragment lets each packet be sent whole, or not at all. The socket then also ignores the
// cached path MTU, so that every probe tests the path again.
func dontFragment(network, _ string, c syscall.RawConn) error {
	var err error
	set := func(fd, level, option, value int) {
		if err == nil {
			err = syscall.SetsockoptInt(fd, level, option, value)
		}
	}
	if control := c.Control(func(fd uintptr) {
		if network == "udp6" {
			set(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_MTU_DISCOVER, syscall.IPV6_PMTUDISC_PROBE)
			set(int(fd), syscall.IPPROTO_IPV6, ipv6DontFragment, 1)
			return
		}
		set(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, syscall.IP_PMTUDISC_PROBE)
	}); control != nil {
		return control
	}
	return err
}
