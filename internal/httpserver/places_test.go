package httpserver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const bodyOwed = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"

// TestABodyThatDoesNotComeBlocksNoOtherClient: whether the handler reads bodies, answers without
// the body, or the port accepts no bodies at all.
func TestABodyThatDoesNotComeBlocksNoOtherClient(t *testing.T) {
	reads := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fine(w, r)
	})
	for name, c := range map[string]struct {
		handler  http.Handler
		bodies   bool
		patience time.Duration
	}{
		"the handler reads":               {reads, true, 10 * time.Millisecond},
		"the handler answers without it":  {fine, true, time.Hour},
		"the port takes no bodies at all": {fine, false, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			l := limits()
			l.Patience, l.Bodies = c.patience, c.bodies
			s, addr := serve(t, c.handler, l)
			for range 5 * l.Connections {
				_, err := io.WriteString(dial(t, addr), bodyOwed)
				require.NoError(t, err)
			}
			good := dial(t, addr)
			require.NoError(t, good.SetDeadline(time.Now().Add(30*time.Second)))
			code, err := answered(good)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, code)
			require.LessOrEqual(t, s.Open(), l.Connections)
		})
	}
}

// TestARefusedBodyDoesNotCostTheAnswer: a client that is still sending its body reads why it was
// refused. A body that has already arrived leaves the connection open.
func TestARefusedBodyDoesNotCostTheAnswer(t *testing.T) {
	l := limits()
	l.Bodies = true
	refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	_, addr := serve(t, refuses, l)
	c := dial(t, addr)
	answers := bufio.NewReader(c)
	for range 2 {
		_, err := io.WriteString(c, bodyOwed+"0123456789")
		require.NoError(t, err)
		res, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	}
	// The control: a body that never arrives costs the connection, and not the answer.
	_, err := io.WriteString(c, bodyOwed)
	require.NoError(t, err)
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.True(t, res.Close)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// TestAConnectionHasAnAge: a busy connection is closed with an answer, an idle one without. Neither
// starts a request later.
func TestAConnectionHasAnAge(t *testing.T) {
	l := limits()
	l.Age = 2 * time.Second
	s, addr := serve(t, fine, l)
	began := time.Now()
	idle, busy := dial(t, addr), dial(t, addr)
	for _, c := range []net.Conn{idle, busy} { // the control: a young connection stays open
		for range 2 {
			code, err := answered(c)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, code)
		}
	}
	require.Eventually(t, func() bool {
		_, err := answered(busy)
		return err != nil
	}, time.Minute, 10*time.Millisecond)
	require.Greater(t, time.Since(began), l.Age/2-time.Millisecond)
	_, err := idle.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Greater(t, time.Since(began), l.Age-time.Millisecond)
	require.Eventually(t, func() bool { return s.Open() == 0 }, time.Minute, time.Millisecond)
}

// TestAHandlerMayOutliveItsConnectionsAge.
func TestAHandlerMayOutliveItsConnectionsAge(t *testing.T) {
	l := limits()
	l.Age = 50 * time.Millisecond
	_, addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			http.Error(w, "cut off", http.StatusInternalServerError)
		case <-time.After(10 * l.Age):
			fine(w, r)
		}
	}), l)
	code, err := answered(dial(t, addr))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
}
