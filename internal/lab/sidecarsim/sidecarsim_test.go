package sidecarsim_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/sidecarsim"
)

const key = "sei/rpc-0"

var pod = sidecarsim.Pod{Namespace: "sei", Name: "rpc-0", UID: "first", Node: "n1", IP: "127.65.0.1", SeiNode: "rpc"}

// client sends requests to one simulator's sidecars.
type client struct {
	*sidecarsim.Server
	t    *testing.T
	http http.Client
}

// start runs a simulator with one pod. Tokens are names: "unknown" has no owner, "guest" has no
// right.
func start(t *testing.T) *client {
	t.Helper()
	free, err := net.Listen("tcp", "127.65.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	s, err := sidecarsim.New(sidecarsim.Options{Port: port, Review: func(_ context.Context, token string, a sidecarsim.Access) (string, sidecarsim.Verdict, error) {
		switch {
		case token == "broken":
			return "", sidecarsim.Unknown, errors.New("no API server")
		case token == "unknown":
			return "", sidecarsim.Unknown, nil
		case token == "guest" || token == "reader" && a.Verb != "get" || a.Namespace != "sei" || a.SeiNode != "rpc":
			return token, sidecarsim.Denied, nil
		}
		return token, sidecarsim.Allowed, nil
	}})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.NoError(t, s.Run(pod))
	c := &client{Server: s, t: t}
	c.http.Timeout = time.Minute
	c.http.Transport = &http.Transport{DisableKeepAlives: true}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// do sends a request. The status is 0 if no complete answer came.
func (c *client) do(method, path, token, body string) (status int, answer string) {
	c.t.Helper()
	return c.doFor(c.t.Context(), method, path, token, body)
}

// doFor does the same as do, until the context ends.
func (c *client) doFor(ctx context.Context, method, path, token, body string) (status int, answer string) {
	c.t.Helper()
	url := "http://" + net.JoinHostPort("127.65.0.1", strconv.Itoa(c.Port())) + path
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(c.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// giveUp sends a request that hangs, and cancels it when it has arrived.
func (c *client) giveUp(op sidecarsim.Op, method, path, body string) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	statuses := make(chan int, 1)
	go func() {
		status, _ := c.doFor(ctx, method, path, "sei", body)
		statuses <- status
	}()
	_, err := c.AwaitCall(ctx, func(call sidecarsim.Call) bool { return call.Op == op })
	require.NoError(c.t, err)
	cancel()
	require.Zero(c.t, <-statuses)
}

func (c *client) health() int {
	c.t.Helper()
	status, _ := c.do("GET", "/v0/healthz", "", "")
	return status
}

// post posts a task as Sei's controller, and returns the status and the task's ID.
func (c *client) post(kind, id string) (int, string) {
	c.t.Helper()
	body := map[string]string{"type": kind}
	if id != "" {
		body["id"] = id
	}
	text, err := json.Marshal(body)
	require.NoError(c.t, err)
	status, answer := c.do("POST", "/v0/tasks", "sei", string(text))
	var said struct{ ID string }
	if status == http.StatusCreated {
		require.NoError(c.t, json.Unmarshal([]byte(answer), &said))
	}
	return status, said.ID
}

func TestANewPodIsClosedAndMarkReadyOpensIt(t *testing.T) {
	c := start(t)
	for path, want := range map[string]int{"/v0/healthz": 503, "/v0/startupz": 503, "/v0/livez": 200, "/v0/metrics": 200} {
		status, _ := c.do("GET", path, "", "")
		require.Equal(t, want, status, path)
	}
	_, said := c.do("GET", "/v0/status", "sei", "")
	require.JSONEq(t, `{"status":"Initializing"}`, said)

	status, id := c.post(sidecarsim.MarkReady, "")
	require.Equal(t, 201, status)
	require.NoError(t, uuid.Validate(id))
	require.Equal(t, 200, c.health())
	_, said = c.do("GET", "/v0/status", "sei", "")
	require.JSONEq(t, `{"status":"Ready"}`, said)
	_, said = c.do("GET", "/v0/tasks/"+id, "sei", "")
	require.JSONEq(t, `{"id":"`+id+`","type":"mark-ready","status":"completed"}`, said)

	status, _ = c.post(sidecarsim.MarkNotReady, "")
	require.Equal(t, 201, status)
	require.Equal(t, 503, c.health(), "held back on purpose")
	status, _ = c.post(sidecarsim.MarkReady, "")
	require.Equal(t, 201, status)
	require.Equal(t, 200, c.health(), "and nothing keeps anybody from opening it")
	require.Len(t, c.Done(key), 3)
}

func TestAnIdIsRememberedForEver(t *testing.T) {
	c, id := start(t), uuid.NewString()
	status, _ := c.post(sidecarsim.MarkReady, id)
	require.Equal(t, 201, status)
	require.Equal(t, 200, c.health())

	successor := pod
	successor.UID = "second"
	c.End(pod)
	require.Zero(t, c.health(), "nobody listens")
	require.NoError(t, c.Run(successor))
	require.Equal(t, 503, c.health(), "the gate was in memory")
	status, said := c.post(sidecarsim.MarkReady, id)
	require.Equal(t, 201, status, "accepted")
	require.Equal(t, id, said)
	require.Equal(t, 503, c.health(), "and not done")
	last := c.CallsTo(key, sidecarsim.Submit)[1]
	require.True(t, last.Known)
	require.Empty(t, last.Done)
	require.Equal(t, "second", last.Pod.UID)

	status, _ = c.post(sidecarsim.MarkReady, uuid.NewString())
	require.Equal(t, 201, status)
	require.Equal(t, 200, c.health())
	require.NoError(t, c.Restart(key))
	require.Equal(t, 503, c.health(), "a container's restart closes it too")
	require.Equal(t, []string{key}, c.Closed())
	require.Len(t, c.Tasks("sei", "rpc"), 2)
}

func TestTheSimulatorChecksTokens(t *testing.T) {
	c := start(t)
	body := `{"type":"mark-ready"}`
	for token, want := range map[string]int{"": 401, "unknown": 401, "guest": 403, "reader": 403, "broken": 500} {
		status, _ := c.do("POST", "/v0/tasks", token, body)
		require.Equal(t, want, status, token)
	}
	status, _ := c.do("GET", "/v0/tasks", "reader", "")
	require.Equal(t, 200, status)
	status, _ = c.do("GET", "/v0/status", "", "")
	require.Equal(t, 401, status)
	require.Empty(t, c.Done(key))
	for _, call := range c.CallsTo(key, sidecarsim.Submit) {
		require.NotContains(t, call.Body+call.Answer, "Bearer")
	}

	bare := pod
	bare.UID, bare.NoProxy = "bare", true
	require.NoError(t, c.Run(bare), "it takes the other's place")
	status, _ = c.do("POST", "/v0/tasks", "", body)
	require.Equal(t, 201, status)
}

func TestAMalformedTaskIsRefused(t *testing.T) {
	c := start(t)
	for _, body := range []string{"", "mark-ready", `{}`, `{"type":"reboot"}`, `{"type":"mark-ready","id":"7"}`, `{"type":"mark-ready","id":""}`, `{"type":"mark-ready"}{}`, `[]`} {
		status, said := c.do("POST", "/v0/tasks", "sei", body)
		require.Equal(t, 400, status, body)
		require.Contains(t, said, `"error"`)
	}
	for path, method := range map[string]string{"/v0/nothing": "GET", "/v0/tasks/" + uuid.NewString(): "GET", "/v1/tasks": "POST"} {
		status, _ := c.do(method, path, "sei", "")
		require.Equal(t, 404, status, path)
	}
	require.Equal(t, 503, c.health())
	require.Empty(t, c.Tasks("sei", "rpc"))
}
