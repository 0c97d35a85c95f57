package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

func TestBodiesAreBounded(t *testing.T) {
	const longest = 1000
	post := func(b *Bodies, body io.Reader) (func(), error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		require.NoError(t, err)
		if _, known := body.(*strings.Reader); !known {
			r.ContentLength = -1 // a server's request has -1 if the length is unknown
		}
		got, release, err := b.Read(nil, r)
		if err == nil && r.ContentLength > 0 {
			require.Len(t, got, int(r.ContentLength))
		}
		return release, err
	}
	unknown := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }
	full := strings.Repeat("x", longest)

	b := NewBodies(longest, 2, 100*valueBytes, 10*time.Millisecond)
	for name, tc := range map[string]struct {
		body io.Reader
		want error
	}{
		"as long as may be":            {strings.NewReader(full), nil},
		"as long, its length unknown":  {unknown(full), nil},
		"too long":                     {strings.NewReader(full + "x"), ErrTooLong},
		"too long, its length unknown": {unknown(full + "x"), ErrTooLong},
		"as many values as may be":     {strings.NewReader(strings.Repeat(",", 99)), nil},
		"too many values":              {strings.NewReader(strings.Repeat(",", 100)), ErrTooMuch},
		"too many lists":               {strings.NewReader(strings.Repeat("[", 100)), ErrTooMuch},
		"commas and braces in a text":  {strings.NewReader(`{"a":"` + strings.Repeat(`,{[\"`, 100) + `"}`), nil},
		"a text that ends, and values": {strings.NewReader(`"\\\\"` + strings.Repeat(",", 100)), ErrTooMuch},
		"too many objects":             {strings.NewReader(strings.Repeat("{", 100)), ErrTooMuch},
		"nothing":                      {strings.NewReader(""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := post(b, tc.body)
			require.ErrorIs(t, err, tc.want)
			if err == nil {
				release()
			}
		})
	}
}

// TestLongBodiesShareTheMemory: short bodies need none of it.
func TestLongBodiesShareTheMemory(t *testing.T) {
	const longest = 2 * headBytes
	b := NewBodies(longest, 2, 100*valueBytes, 10*time.Millisecond)
	post := func(body io.Reader) (func(), error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		require.NoError(t, err)
		_, release, err := b.Read(nil, r)
		return release, err
	}
	full := strings.Repeat("x", longest)
	var held []func()
	for range 2 {
		release, err := post(strings.NewReader(full))
		require.NoError(t, err)
		held = append(held, release)
	}
	_, err := post(strings.NewReader(full))
	require.ErrorIs(t, err, ErrBusy, "two of the longest fill it")
	release, err := post(strings.NewReader("x"))
	require.NoError(t, err, "a short one needs none of it")
	release()
	held[0]()
	release, err = post(strings.NewReader(strings.Repeat(",", 98)))
	require.NoError(t, err)
	_, err = post(strings.NewReader(",,"))
	require.ErrorIs(t, err, ErrBusy, "nor is there room for its values")
	release()
	held[1]()
	for range 3 { // all memory was released
		release, err = post(strings.NewReader(full))
		require.NoError(t, err)
		release()
	}
}

// TestALongBodyThatStallsGivesItsMemoryToOthers: a stalled body stays while no other request needs
// memory.
func TestALongBodyThatStallsGivesItsMemoryToOthers(t *testing.T) {
	const longest = 2 * headBytes
	for name, waits := range map[string]bool{"another body waits": true, "nobody waits": false} {
		t.Run(name, func(t *testing.T) {
			b := NewBodies(longest, 1, 1<<20, time.Second)
			l := limits()
			l.Bodies = true
			_, addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, release, err := b.Read(w, r)
				if err != nil {
					http.Error(w, err.Error(), http.StatusServiceUnavailable)
					return
				}
				release()
				fine(w, r)
			}), l)
			begin := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", longest)
			stalls := dial(t, addr)
			_, err := io.WriteString(stalls, begin+strings.Repeat("x", headBytes+1))
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				_, since := b.slowest()
				return !since.IsZero()
			}, time.Minute, time.Millisecond)
			c := stalls
			rest := strings.Repeat("x", longest-headBytes-1)
			if waits {
				c, rest = dial(t, addr), begin+strings.Repeat("x", longest)
			} else {
				time.Sleep(3 * b.patience) // longer than a body that others want to replace may stall
			}
			_, err = io.WriteString(c, rest)
			require.NoError(t, err)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusOK, res.StatusCode)
			if waits {
				_, err = stalls.Read(make([]byte, 1))
				require.Error(t, err)
			}
		})
	}
}

// TestABodyThatStalledAsLongAsAnotherWaitedIsReplaced: both times end at once, and the waiting
// request may wake late.
func TestABodyThatStalledAsLongAsAnotherWaitedIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longest = 2 * headBytes
		b := NewBodies(longest, 1, 1<<20, time.Second)
		s := New("the test", fine, limits(), logr.Discard())
		ours, theirs := net.Pipe()
		defer func() { _ = theirs.Close() }()
		stalls, err := http.NewRequestWithContext(withConn(t.Context(), &conn{Conn: ours, server: s}), http.MethodPost, "/", ours)
		require.NoError(t, err)
		stalls.ContentLength = longest
		cut := make(chan error, 1)
		go func() {
			_, _, err := b.Read(nil, stalls)
			cut <- err
		}()
		_, err = io.WriteString(theirs, strings.Repeat("x", headBytes+1))
		require.NoError(t, err)
		synctest.Wait() // the body has its memory, and stalls

		full, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", longest)))
		require.NoError(t, err)
		_, release, err := b.Read(nil, full)
		require.NoError(t, err)
		release()
		require.ErrorIs(t, <-cut, io.ErrClosedPipe)
	})
}
