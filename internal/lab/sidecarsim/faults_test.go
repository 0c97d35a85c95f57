package sidecarsim_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/sidecarsim"
)

func TestAHangEndsWithHealAndIsServedThen(t *testing.T) {
	c := start(t)
	c.Inject(key, sidecarsim.Submit, sidecarsim.Hang())
	c.Inject(key, sidecarsim.Health, sidecarsim.Hang())
	c.giveUp(sidecarsim.Submit, "POST", "/v0/tasks", `{"type":"mark-ready"}`)
	c.giveUp(sidecarsim.Health, "GET", "/v0/healthz", "")
	require.Empty(t, c.Done(key))
	require.Equal(t, []string{key}, c.Closed())

	c.Heal(key, sidecarsim.Health)
	require.NoError(t, c.Await(t.Context(), func() bool { return c.CallsTo(key, sidecarsim.Health)[0].Status == 503 }))
	c.Heal(key)
	require.NoError(t, c.Await(t.Context(), func() bool { return c.Ready(key) }), "the caller had gone, and was heard")
	require.Len(t, c.Done(key), 1)
}

func TestAHangEndsWithItsProcess(t *testing.T) {
	for name, end := range map[string]func(c *client){
		"pod":       func(c *client) { c.End(pod) },
		"container": func(c *client) { require.NoError(t, c.Restart(key)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.InjectNext(key, sidecarsim.Submit, 1, sidecarsim.Hang())
			c.giveUp(sidecarsim.Submit, "POST", "/v0/tasks", `{"type":"mark-ready"}`)
			end(c)
			c.HealAll()
			require.NoError(t, c.Await(t.Context(), func() bool { return c.CallsTo(key, sidecarsim.Submit)[0].Status == sidecarsim.NoAnswer }))
			require.Empty(t, c.Done(key))
			require.False(t, c.Ready(key))
		})
	}
}

func TestFaultsSayWhatTheySay(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	for name, tc := range map[string]struct {
		fault  sidecarsim.Fault
		status int
		opens  bool
	}{
		"cut":              {sidecarsim.Cut(), 0, false},
		"torn":             {sidecarsim.Torn(201), 0, false},
		"cut after":        {sidecarsim.After(sidecarsim.Cut()), 0, true},
		"torn after":       {sidecarsim.After(sidecarsim.Torn(201)), 0, true},
		"server error":     {sidecarsim.Answer(500, nil), 500, false},
		"refused but done": {sidecarsim.After(sidecarsim.Answer(500, nil)), 500, true},
		"unauthorized":     {sidecarsim.Unauthorized(), 401, false},
		"forbidden":        {sidecarsim.Forbidden(), 403, false},
		"redirect":         {sidecarsim.Redirect(elsewhere.URL), 307, false},
		"oversize":         {sidecarsim.Oversize(418, 1<<20), 418, false},
		"slow":             {sidecarsim.Slow(20 * time.Millisecond), 201, true},
		"wedged":           {sidecarsim.Wedged(), 201, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.InjectNext(key, sidecarsim.Submit, 1, tc.fault)
			status, said := c.do("POST", "/v0/tasks", "sei", `{"type":"mark-ready"}`)
			require.Equal(t, tc.status, status, said)
			require.Equal(t, tc.opens, c.Ready(key))
			require.Equal(t, tc.fault.String(), c.CallsTo(key, sidecarsim.Submit)[0].Fault)
			status, _ = c.post(sidecarsim.MarkReady, "")
			require.Equal(t, 201, status, "only the first suffered it")
			require.True(t, c.Ready(key))
		})
	}
}

func TestAWedgedSidecarAcceptsAndRemembersAndStaysClosed(t *testing.T) {
	c, id := start(t), uuid.NewString()
	c.Inject("", sidecarsim.Submit, sidecarsim.Wedged())
	status, _ := c.post(sidecarsim.MarkReady, id)
	require.Equal(t, 201, status)
	require.Equal(t, 503, c.health())
	require.Equal(t, []sidecarsim.Task{{ID: id, Type: "mark-ready", Status: "completed"}}, c.Tasks("sei", "rpc"))
	c.HealAll()
	_, _ = c.post(sidecarsim.MarkReady, id)
	require.Equal(t, 503, c.health(), "the id is spent all the same")
}

func TestALateTaskOpensTheGateAfterItsAnswer(t *testing.T) {
	c := start(t)
	c.InjectNext(key, sidecarsim.Submit, 1, sidecarsim.Late(20*time.Millisecond))
	status, _ := c.post(sidecarsim.MarkReady, "")
	require.Equal(t, 201, status)
	require.NoError(t, c.Await(t.Context(), func() bool { return c.Ready(key) }))
	require.NoError(t, c.Await(t.Context(), func() bool { return c.Tasks("sei", "rpc")[0].Status == "completed" }))
}

func TestFaultsOfOnePodOutliveItAndLeaveOthersAlone(t *testing.T) {
	c := start(t)
	c.Inject(key, sidecarsim.Health, sidecarsim.Answer(502, nil))
	successor := pod
	successor.UID = "second"
	require.NoError(t, c.Run(successor))
	require.Equal(t, 502, c.health())
	other := sidecarsim.Pod{Namespace: "sei", Name: "other-0", UID: "other", Node: "n1", IP: "127.65.0.2", SeiNode: "other"}
	require.NoError(t, c.Run(other))
	require.Len(t, c.Pods(), 2)
	require.Equal(t, []string{"sei/other-0", key}, c.RestartOn("n1"))
	c.Heal("sei/other-0")
	require.Equal(t, 502, c.health())
	c.Heal(key, sidecarsim.Health)
	require.Equal(t, 503, c.health())
}

func TestTheHookRunsBeforeTheAnswer(t *testing.T) {
	c := start(t)
	var seen sidecarsim.Call
	c.On(sidecarsim.Submit, func(call sidecarsim.Call) { seen = call })
	status, id := c.post(sidecarsim.MarkReady, "")
	require.Equal(t, 201, status)
	require.Equal(t, id, seen.TaskID)
	require.Zero(t, seen.Status)
	require.Equal(t, "sei", seen.User)
}
