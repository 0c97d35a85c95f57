package main

import (
	"net"
	"net/netip"
	"strconv"

	"drydock.dev/drydock/internal/cli"
)

// mutexSample is how many waits for a lock there are per sample in the profile: few enough to show
// what is slow, at no cost.
const mutexSample = 100

// checkProfilerAddress refuses any address but a port on loopback. A profile shows the memory of
// the process, and a client that requests profiles can cause any load.
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
	// Names are refused, even localhost: the resolver decides what a name means.
	if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
		return cli.Usagef("--pprof %q: profiles are served on loopback only, for example 127.0.0.1:6060; reach them with kubectl port-forward", address)
	}
	return nil
}
