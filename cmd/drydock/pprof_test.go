package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

func TestProfilesAreServedOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:6060", "[::1]:6060", "127.0.0.2:0", "[::ffff:127.0.0.1]:6060"} {
		require.NoError(t, checkProfilerAddress(address), address)
	}
	for address, why := range map[string]string{
		":6060": "loopback only", "0.0.0.0:6060": "loopback only", "[::]:6060": "loopback only", "10.0.0.1:6060": "loopback only",
		"localhost:6060": "loopback only", "drydock.example.com:6060": "loopback only", "6060": "an address and a port", "127.0.0.1": "an address and a port",
		"127.0.0.1:http": "is not a port", "127.0.0.1:70000": "is not a port", "127.0.0.1:": "is not a port",
	} {
		code, _, stderr := call(t, "run", "--config", "drydock.yaml", "--pprof", address)
		require.Equal(t, cli.ExitUsage, code, address)
		require.Contains(t, stderr, "--pprof", address)
		require.Contains(t, stderr, why, address)
	}
}
