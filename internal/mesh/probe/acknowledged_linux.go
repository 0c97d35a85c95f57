package probe

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledged reports whether the other side's kernel has acknowledged all data on the connection.
func acknowledged(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	done := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		done = err == nil && info.Unacked == 0 && info.Notsent_bytes == 0
	})
	return err == nil && done
}
