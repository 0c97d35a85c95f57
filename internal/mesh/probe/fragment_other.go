//go:build !linux

package probe

import "syscall"

// dontFragment does nothing here. Agents run on Linux.
func dontFragment(string, string, syscall.RawConn) error { return nil }
