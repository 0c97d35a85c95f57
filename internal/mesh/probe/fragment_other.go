//go:build !linux

package probe

import "syscall"

// dontFragment is for Linux alone, where agents run.
func dontFragment(string, string, syscall.RawConn) error { return nil }
