package receiver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestKeptConnectionsShutNobodyOut: in a storm Alertmanager opens a connection for each group and keeps it. Those that are
// still waiting to be let in must not wait for the others to get tired of it.
func TestKeptConnectionsShutNobodyOut(t *testing.T) {
	s := newServer(t, Options{Listen: "127.0.0.1:0", Recorder: RecorderFunc(func(context.Context, Alert) (Result, error) { return Accepted, nil })})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	<-s.Listening()
	var posts errgroup.Group
	for range 2 * maxConnections {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		posts.Go(func() error {
			client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
			res, err := client.Post("http://"+s.Addr().String()+"/v1/alerts", "application/json", strings.NewReader(postOf()))
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, res.Body)
			return errors.Join(err, res.Body.Close())
		})
	}
	require.NoError(t, posts.Wait())
	stop()
	require.NoError(t, <-ended)
}
