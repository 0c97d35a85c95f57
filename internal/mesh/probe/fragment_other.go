//go:build !linux

package probe

import "syscall"

// dontFragment exists only for Linux, where agents run.
func dontFragment(string, string, syscall.RawConn) error { return nil }
