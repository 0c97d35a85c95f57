package main

import (
	"net"
	"net/netip"
	"strconv"

	"drydock.dev/drydock/internal/cli"
)

// mutexSample records one of every 100 waits for a lock, which costs almost nothing.
const mutexSample = 100

// checkProfilerAddress allows only loopback: a profile shows the process's memory, and requests for
// profiles can overload the process.
func checkProfilerAddress(address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return cli.Usagef("--pprof %q: write an address and a port, for example 127.0.0.1:6060", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return cli.Usagef("--pprof %q: %q is not a port; write one, for example 127.0.0.1:6060", address, port)
	}
	// Names are refused, even localhost, because the resolver decides which address a name has.
	if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
		return cli.Usagef("--pprof %q: profiles are served on loopback only, for example 127.0.0.1:6060; reach them with kubectl port-forward", address)
	}
	return nil
}
