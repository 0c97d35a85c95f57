package kit

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listening counts the bytes that arrive, and never answers.
func listening(t *testing.T) (address string, arrived *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	arrived = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n, _ := io.CopyN(io.Discard, conn, 4) // "POST"
			arrived.Add(n)
			_ = conn.Close()
		}
	}()
	return l.Addr().String(), arrived
}

func send(t *testing.T, g *Gate, address string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(g.Trace(t.Context()), http.MethodPost, "http://"+address, nil)
	require.NoError(t, err)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// TestNotOneByteLeavesAShutGate: whatever shut the gate. A request that was sent cannot be
// withdrawn.
func TestNotOneByteLeavesAShutGate(t *testing.T) {
	t.Parallel()
	no := errors.New("no longer the leader")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	late := 0
	for name, g := range map[string]*Gate{
		"forbidden": NewGate(t.Context(), func() error { return no }),
		"too late":  NewGate(over, func() error { return nil }),
		"withdrawn": NewGate(t.Context(), func() error { late++; return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			address, arrived := listening(t)
			if name == "withdrawn" {
				require.True(t, g.Withdraw())
			}
			require.Error(t, send(t, g, address))
			require.True(t, g.Withdraw(), "nothing has left")
			require.Zero(t, late, "the last check may take the node for this repair, so it is not made after the answer")
			require.Equal(t, name == "forbidden", errors.Is(g.Forbidden(), no))

			asked := 0
			open := NewGate(t.Context(), func() error { asked++; return nil })
			_ = send(t, open, address)
			require.Eventually(t, func() bool { return arrived.Load() == 4 }, time.Minute, time.Millisecond, "the control: this one arrives, and nothing came before")
			require.False(t, open.Withdraw())
			require.Equal(t, 1, asked)
			require.NoError(t, open.Forbidden())
		})
	}
}

// TestWithoutAGateAllLeave: requests that change nothing have no gate.
func TestWithoutAGateAllLeave(t *testing.T) {
	t.Parallel()
	address, arrived := listening(t)
	_ = send(t, nil, address)
	require.Eventually(t, func() bool { return arrived.Load() == 4 }, time.Minute, time.Millisecond)
}
