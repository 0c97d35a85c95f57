package receiver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestIdleConnectionsBlockNoOtherClient: in a storm Alertmanager opens a connection for each group
// and keeps it open. Other clients must not wait until these connections time out.
func TestIdleConnectionsBlockNoOtherClient(t *testing.T) {
	s := newServer(t, Options{})
	s.timeouts.header, s.timeouts.read, s.timeouts.silent, s.timeouts.idle = time.Hour, time.Hour, time.Hour, time.Hour
	start(t, s)
	var posts errgroup.Group
	for range 2 * maxConnections {
		client := aClient(t)
		posts.Go(func() error { return postOver(client, s) })
	}
	require.NoError(t, posts.Wait())
}

// TestConnectionsAreUsedAgainSoonAfterAStorm: while the storm's idle connections stay open, every
// further connection is closed after its answer.
func TestConnectionsAreUsedAgainSoonAfterAStorm(t *testing.T) {
	t.Parallel()
	s := newServer(t, Options{})
	start(t, s)
	for range keptConnections {
		require.NoError(t, postOver(aClient(t), s))
	}
	require.Eventually(t, func() bool { return s.http.Open() == 0 }, time.Minute, 50*time.Millisecond)
	client := aClient(t)
	for range 3 {
		require.NoError(t, postOver(client, s))
		require.Equal(t, 1, s.http.Open())
	}
}

// TestSilentConnectionsBlockNoPost: thousands of connections that Alertmanager opened and gave up
// still arrive.
func TestSilentConnectionsBlockNoPost(t *testing.T) {
	s := newServer(t, Options{})
	s.timeouts.header, s.timeouts.read, s.timeouts.silent = time.Hour, time.Hour, 50*time.Millisecond
	start(t, s)
	var silent []net.Conn
	for range 3 * maxConnections {
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", s.Addr().String())
		require.NoError(t, err)
		silent = append(silent, conn)
	}
	require.NoError(t, postOver(aClient(t), s))
	for _, conn := range silent {
		require.NoError(t, conn.Close())
	}
}

// aClient returns a client with connections of its own.
func aClient(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func postOver(client *http.Client, s *Server) error {
	res, err := client.Post("http://"+s.Addr().String()+"/v1/alerts", "application/json", strings.NewReader(postOf()))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	if res.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(res.Status))
	}
	return errors.Join(err, res.Body.Close())
}
