package httpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

// limits have long times, so that only a test's own limits cut anything off.
func limits() Limits {
	return Limits{Connections: 8, Kept: 4, Patience: time.Hour, Header: time.Hour, Read: time.Hour, Write: time.Hour, Idle: time.Hour, HeaderBytes: 4 << 10}
}

func serve(t *testing.T, handler http.Handler, l Limits) (s *Server, addr string) {
	t.Helper()
	s = New("the test", handler, l, logr.Discard())
	listener, err := s.Listen(t.Context(), "127.0.0.1:0", nil)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener, 0, func() {}) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return s, listener.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c
}

// answered sends a request over the connection and returns the answer's status, or the error.
func answered(c net.Conn) (int, error) {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

var fine = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })

// TestSilentConnectionsBlockNoOtherClient: silent ones and those that have sent half a header.
func TestSilentConnectionsBlockNoOtherClient(t *testing.T) {
	for sent, what := range map[string]string{"": "silent", "GET / HTTP/1.1\r\nHost: x\r\nX-": "half a header"} {
		for _, patience := range []time.Duration{10 * time.Millisecond, time.Hour} {
			t.Run(fmt.Sprintf("%s, patience %s", what, patience), func(t *testing.T) {
				l := limits()
				l.Patience = patience
				s, addr := serve(t, fine, l)
				for range 5 * l.Connections {
					_, err := io.WriteString(dial(t, addr), sent)
					require.NoError(t, err)
				}
				c := dial(t, addr)
				if patience == time.Hour { // the control
					require.Eventually(t, func() bool { return s.Open() == l.Connections }, time.Minute, time.Millisecond)
					require.NoError(t, c.SetDeadline(time.Now().Add(200*time.Millisecond)))
					_, err := answered(c)
					require.ErrorContains(t, err, "timeout")
					require.Equal(t, l.Connections, s.Open())
					return
				}
				code, err := answered(c)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, code)
				require.LessOrEqual(t, s.Open(), l.Connections)
			})
		}
	}
}

// TestAConnectionThatWaitsStays while no other needs its place, although all places are taken and
// its patience has ended.
func TestAConnectionThatWaitsStays(t *testing.T) {
	l := limits()
	l.Patience, l.Kept = time.Nanosecond, l.Connections
	s, addr := serve(t, fine, l)
	var all []net.Conn
	for range l.Connections {
		all = append(all, dial(t, addr))
	}
	require.Eventually(t, func() bool { return s.Open() == l.Connections }, time.Minute, time.Millisecond)
	for range 2 { // a new connection, and one that was answered before
		for _, c := range all {
			code, err := answered(c)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, code)
		}
	}
	code, err := answered(dial(t, addr)) // the control: one of them gave up its place
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
}

// pipes is a listener whose connections are in memory, so that synctest's clock counts their
// waiting.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// TestAConnectionWhoseRequestIsHandledStays, however many others want its place, and for however
// long.
func TestAConnectionWhoseRequestIsHandledStays(t *testing.T) {
	for name, handled := range map[string]bool{"its request is handled": true, "it asks nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limits()
				l.Patience = time.Second
				release := make(chan struct{})
				s := New("the test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					<-release
					fine(w, r)
				}), l, logr.Discard())
				all := make(pipes, 2*l.Connections)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Serve(ctx, s.Limit(all, nil), 0, func() {}) }()
				connect := func() net.Conn {
					ours, theirs := net.Pipe()
					t.Cleanup(func() { _ = ours.Close() })
					all <- theirs
					return ours
				}
				codes := make(chan int, l.Connections)
				for range l.Connections {
					c := connect()
					go func() {
						if !handled {
							_, _ = c.Read(make([]byte, 1)) // until it is closed
							codes <- 0
							return
						}
						code, _ := answered(c)
						codes <- code
					}()
				}
				synctest.Wait()
				for range l.Connections {
					connect()
				}
				time.Sleep(2 * l.Patience)
				synctest.Wait()
				require.Equal(t, l.Connections, s.Open())
				want := 0 // the control: all of them were closed
				if handled {
					close(release)
					want = http.StatusOK
				}
				for range l.Connections {
					require.Equal(t, want, <-codes)
				}
				stop()
				require.NoError(t, <-ended)
			})
		})
	}
}

// TestManyConnectionsCloseWithTheirAnswers.
func TestManyConnectionsCloseWithTheirAnswers(t *testing.T) {
	l := limits()
	l.Kept = 1
	s, addr := serve(t, fine, l)
	kept := dial(t, addr)
	for range 2 {
		_, err := answered(kept)
		require.NoError(t, err)
	}
	c := dial(t, addr)
	_, err := answered(c)
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Eventually(t, func() bool { return s.Open() == 1 }, time.Minute, time.Millisecond)
}

// TestOnlyHTTP1: even with a client that starts with HTTP/2 at once.
func TestOnlyHTTP1(t *testing.T) {
	_, addr := serve(t, fine, limits())
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	res, err := client.Get("http://" + addr)
	if err == nil {
		_ = res.Body.Close()
	}
	require.Error(t, err)
	res, err = http.Get("http://" + addr)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 1, res.ProtoMajor)
}

func TestRequestsAtOnceAreBounded(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	_, addr := serve(t, Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-release
		fine(w, r)
	}), 2, 3*time.Second), limits())
	for range 2 {
		c := dial(t, addr)
		go func() { _, _ = answered(c) }()
		<-begun
	}
	code, err := answered(dial(t, addr))
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, code)
	close(release)
	c := dial(t, addr)
	go func() { <-begun }()
	code, err = answered(c)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
}
