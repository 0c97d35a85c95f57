//go:build !linux

package probe

import "syscall"

// dontFragment does nothing on this system. Agents run on Linux.
func dontFragment(string, string, syscall.RawConn) error { return nil }
