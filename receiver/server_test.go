package receiver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/remediations/intake"
)

var (
	_ manager.Runnable               = (*Server)(nil)
	_ manager.LeaderElectionRunnable = (*Server)(nil)
)

// postTo sends a real request over the network.
func postTo(t testing.TB, client *http.Client, url, token, body string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/alerts", strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestNewRefusesToStart(t *testing.T) {
	empty, good := write(t, "empty", " \n"), write(t, "token", secret)
	long := write(t, "long", strings.Repeat("x", maxTokenBytes+1))
	cases := map[string]struct {
		options Options
		want    string
	}{
		"for anybody":            {Options{}, "would accept posts from any client on :9095: set receiver.tokenFile"},
		"for anybody, by name":   {Options{Listen: "0.0.0.0:9095"}, "would accept posts from any client on 0.0.0.0:9095"},
		"without a port":         {Options{Listen: "127.0.0.1"}, "reading the receiver's listen address"},
		"a token file missing":   {Options{TokenFile: "/nowhere/token"}, "/nowhere/token"},
		"a token file empty":     {Options{TokenFile: empty}, empty + ": the file is empty"},
		"a token file too long":  {Options{TokenFile: long}, long + ": the file is longer than"},
		"half a pair":            {Options{TokenFile: good, TLS: TLSFiles{CertFile: "a"}}, "must be set together"},
		"a client CA alone":      {Options{TLS: TLSFiles{ClientCAFile: "a"}}, "tls.clientCAFile needs"},
		"a certificate missing":  {Options{TokenFile: good, TLS: TLSFiles{CertFile: "/nowhere/crt", KeyFile: "/nowhere/key"}}, "/nowhere/crt"},
		"a certificate that isn": {Options{TokenFile: good, TLS: TLSFiles{CertFile: good, KeyFile: good}}, good},
		"a limit below none":     {Options{TokenFile: good, MaxBodyBytes: -1}, "maxBodyBytes is -1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.Recorder = &book{}
			_, err := New(tc.options)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
	_, err := New(Options{Insecure: true})
	require.ErrorContains(t, err, "lack a Recorder")
	for _, o := range []Options{{Insecure: true}, {Listen: "localhost:0"}, {Listen: "[::1]:0"}, {TokenFile: good}} {
		o.Recorder = &book{}
		_, err := New(o)
		require.NoError(t, err)
	}
}

func TestServerListensUntilItsContextEnds(t *testing.T) {
	s := newServer(t, Options{})
	require.Error(t, s.Ready())
	require.Nil(t, s.Addr())
	require.False(t, s.NeedLeaderElection())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	<-s.Listening()
	require.NoError(t, s.Ready())
	code, err := postTo(t, http.DefaultClient, "http://"+s.Addr().String(), "", postOf(fire("n1")))
	require.NoError(t, err)
	require.Equal(t, 200, code)

	require.ErrorContains(t, s.Start(ctx), "started twice")
	other := newServer(t, Options{Listen: s.Addr().String()})
	require.ErrorContains(t, other.Start(ctx), "opening the receiver's port")

	stop()
	require.NoError(t, <-ended)
	require.Error(t, s.Ready())
}

func TestPostsUnderWayFinishAtShutdown(t *testing.T) {
	recording, release := make(chan struct{}), make(chan struct{})
	s := newServer(t, Options{Recorder: RecorderFunc(func(ctx context.Context, _ alert) (intake.Result, error) {
		close(recording)
		<-release
		return intake.Accepted, ctx.Err()
	})})
	s.timeouts.shutdown = time.Minute // a busy machine may take long to see that new connections are refused
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	<-s.Listening()
	url := "http://" + s.Addr().String()
	code := make(chan int, 1)
	go func() {
		c, err := postTo(t, http.DefaultClient, url, "", postOf(fire("n1"))) //nolint:testifylint // its requires are about its own arguments
		if err != nil {
			t.Error(err)
		}
		code <- c
	}()
	<-recording
	stop()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond, "it takes no new connections")
	close(release)
	require.Equal(t, 200, <-code)
	require.NoError(t, <-ended)
}

func TestASlowBodyIsCutOff(t *testing.T) {
	t.Parallel()
	s := newServer(t, Options{})
	s.timeouts.header, s.timeouts.read = 3*time.Second, 4*time.Second
	addr := start(t, s)
	for what, sent := range map[string]string{
		"a header without end": "POST /v1/alerts HTTP/1.1\r\nHost: x\r\nContent-",
		"a body without end":   "POST /v1/alerts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		t.Run(what, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			_, err = c.Write([]byte(sent))
			require.NoError(t, err)
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			answer, err := io.ReadAll(c) // until the server closes
			require.NoError(t, err)
			if strings.HasPrefix(what, "a body") {
				resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(answer))), nil)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, 400, resp.StatusCode)
				require.Contains(t, string(answer), "did not arrive completely within 4s")
			}
			require.Empty(t, s.posts)
		})
	}
}

func TestAHeaderIsBounded(t *testing.T) {
	b := &book{}
	addr := start(t, newServer(t, Options{Recorder: b}))
	code, err := postTo(t, http.DefaultClient, "http://"+addr, strings.Repeat("x", 2*maxHeaderBytes), postOf(fire("n1")))
	// net/http closes the connection without reading the rest, so the answer may be lost.
	if err == nil {
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, code)
	}
	require.Empty(t, b.names())
}

func TestTheTokenIsReadAgain(t *testing.T) {
	path := write(t, "token", secret)
	var lines []string
	var mu sync.Mutex
	log := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	s := newServer(t, Options{TokenFile: path, Logger: log})
	now := time.Now()
	s.token.now = func() time.Time { return now }
	accepts := func(token string) bool {
		r := request("POST", "/v1/alerts", postOf())
		r.Header.Set("Authorization", "Bearer "+token)
		return do(s, r).Code == 200
	}
	require.True(t, accepts(secret))
	require.NoError(t, os.WriteFile(path, []byte("s3cret-other\n"), 0o600)) // of the same length
	require.True(t, accepts(secret), "the old one is good for a moment more")
	require.True(t, accepts("s3cret-other"), "the new one is good at once")
	require.False(t, accepts(secret), "and with it the old one is not any more")
	require.NoError(t, os.WriteFile(path, []byte(secret), 0o600))
	require.True(t, accepts("s3cret-other"))
	now = now.Add(tokenGood)
	require.False(t, accepts("s3cret-other"), "nor is it when its moment is over")
	require.NoError(t, os.WriteFile(path, []byte("s3cret-other"), 0o600))
	require.True(t, accepts("s3cret-other"))

	now = now.Add(tokenGood)
	require.NoError(t, os.Remove(path))
	require.True(t, accepts("s3cret-other"), "the last good token stays")
	require.True(t, accepts("s3cret-other"))
	require.False(t, accepts(""))
	require.Len(t, lines, 1, "a lost file is logged once")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	now = now.Add(tokenGood)
	require.True(t, accepts("s3cret-other"))
	require.False(t, accepts(""), "an empty file is not an empty token")
	require.Len(t, lines, 2)

	require.NoError(t, os.WriteFile(path, []byte("s3cret-third"), 0o600))
	now = now.Add(tokenGood)
	require.False(t, accepts("s3cret-other"))
	require.True(t, accepts("s3cret-third"))
	require.NotContains(t, fmt.Sprint(lines), "s3cret")
}
