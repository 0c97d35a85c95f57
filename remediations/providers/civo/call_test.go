package civo

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/atonce"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

func arrived(op civosim.Op) func(civosim.Call) bool {
	return func(c civosim.Call) bool { return c.Op == op }
}

func TestCallsAreMadeOneAtATime(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	var calls atonce.Count
	sim.OnReboot(func() {
		calls.Enter()
		runtime.Gosched()
		calls.Leave()
	})
	c := client(t, sim.URL())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _ = c.Reboot(t.Context(), node1, nil) })
	}
	all.Wait()
	require.Len(t, sim.Done(civosim.HardReboots), 8)
	require.Equal(t, 1, calls.Most())
	var ops []civosim.Op
	for _, call := range sim.Calls() {
		if last := len(ops) - 1; last >= 0 && ops[last] == civosim.GetInstance && call.Op == civosim.ListInstances {
			continue // a busy machine: the instance was not shown in time, so the same lookup read the list
		}
		ops = append(ops, call.Op)
	}
	require.Equal(t, civosim.ListInstances, ops[0])
	for i, op := range ops[1:] {
		want := []civosim.Op{civosim.HardReboots, civosim.GetInstance}[i%2]
		require.Equal(t, want, op, "no lookup comes between another's lookup and write")
	}
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	err := c.Reboot(over(t), node1, nil)
	requireRefused(t, err, reasonBusy)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Find(over(t), node1)
	requireRefused(t, err, reasonBusy, "finding node")
	require.Empty(t, sim.Calls())
}

func TestContextThatEndsDuringTheLookupIsARefusal(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	sim.Inject(civosim.ListInstances, civosim.Hang())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = sim.AwaitCall(ctx, arrived(civosim.ListInstances))
		cancel()
	}()
	err := client(t, sim.URL()).Reboot(ctx, node1, nil)
	requireRefused(t, err, reasonUnreachable)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, sim.CallsTo(civosim.HardReboots))
}

func TestContextThatEndsAfterTheRequestLeftIsUnknown(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	sim.InjectNext(civosim.HardReboots, 1, civosim.After(civosim.Hang()))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = sim.AwaitCall(ctx, func(c civosim.Call) bool { return c.Op == civosim.HardReboots && c.Done != "" })
		cancel()
	}()
	err := client(t, sim.URL()).Reboot(ctx, node1, nil)
	requireUnknown(t, err)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, sim.Done(civosim.HardReboots), 1)
}

func TestALookupThatTakesTooLongIsNotFollowedByAWrite(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	sim.Inject(civosim.ListInstances, civosim.Slow(time.Minute))
	c := client(t, sim.URL(), func(o *Options) { o.IssueWithin = 300 * time.Millisecond })
	err := c.Reboot(t.Context(), node1, nil)
	requireRefused(t, err, reasonUnreachable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, sim.CallsTo(civosim.HardReboots))
}

// TestAGateThatIsShutLetsNothingOut drives the last check before the wire: the connection is
// established, and not even the headers leave.
func TestAGateThatIsShutLetsNothingOut(t *testing.T) {
	t.Parallel()
	for name, issue := range map[string]context.Context{"withdrawn": t.Context(), "too late": over(t)} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			c := client(t, sim.URL())
			g := kit.NewGate(issue, nil)
			if name == "withdrawn" {
				require.True(t, g.Withdraw())
			}
			o := c.call(t.Context(), g, func(api *civogo.Client) error {
				_, err := api.HardRebootInstance("i-1")
				return err
			})
			require.Error(t, o.transport)
			require.True(t, g.Withdraw())
			requireRefused(t, c.writeVerdict(issue, task{verb: "rebooting", machine: node1}, g, o), reasonUnreachable)
			sim.Close() // waits for calls under way
			require.Empty(t, sim.Calls())
		})
	}
}

func TestWriteThatMayNotBeIssuedAnyMore(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	require.NoError(t, c.takeTurn(t.Context(), task{}))
	err := c.write(t.Context(), over(t), task{verb: "rebooting", machine: node1}, nil, func(api *civogo.Client) (*civogo.SimpleResponse, error) {
		return api.HardRebootInstance("i-1")
	})
	requireRefused(t, err, reasonUnreachable, "did not reach Civo")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, c.Reboot(t.Context(), node1, nil), "the turn is given back")
	require.Len(t, sim.CallsTo(civosim.HardReboots), 1)
}

type lateAnswer struct {
	machine engine.Machine
	outcome remediations.CallOutcome
	err     error
}

func TestLateAnswers(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]civosim.Fault{"accepted": {}, "refused": civosim.After(civosim.Failed())} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			if fault.String() != "" {
				sim.InjectNext(civosim.HardReboots, 1, fault)
			}
			hold, release := context.WithCancel(t.Context())
			sim.OnReboot(func() { <-hold.Done() })
			late := make(chan lateAnswer, 1)
			c := client(t, sim.URL(), func(o *Options) {
				o.Late = func(m engine.Machine, outcome remediations.CallOutcome, err error) {
					late <- lateAnswer{m, outcome, err}
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, _ = sim.AwaitCall(t.Context(), func(c civosim.Call) bool { return c.Op == civosim.HardReboots && c.Done != "" })
				cancel()
			}()
			requireUnknown(t, c.Reboot(ctx, node1, nil))

			// The call is still running, so no other call may start.
			waiting, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer stop()
			before := len(sim.Calls())
			requireRefused(t, c.Reboot(waiting, node1, nil), reasonBusy, "earlier call")
			require.Len(t, sim.Calls(), before)

			release()
			var answer lateAnswer
			select {
			case answer = <-late:
			case <-time.After(2 * time.Minute):
				require.FailNow(t, "Late heard of nothing")
			}
			require.Equal(t, node1, answer.machine)
			if name == "accepted" {
				require.NoError(t, answer.err)
				require.Equal(t, remediations.CallAccepted, answer.outcome)
			} else {
				require.Equal(t, remediations.CallRefused, answer.outcome)
				requireRefused(t, answer.err, reasonRejected)
			}
			require.NoError(t, c.Reboot(t.Context(), node1, nil))
		})
	}
}

// TestAHangDoesNotHoldUpOthersForEver: the call is cut off after another Timeout, and no answer is
// invented for it.
func TestAHangDoesNotHoldUpOthersForEver(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	sim.InjectNext(civosim.HardReboots, 1, civosim.Hang())
	c := client(t, sim.URL(), func(o *Options) {
		o.Late = func(_ engine.Machine, _ remediations.CallOutcome, err error) {
			t.Errorf("no answer came, but Late heard of %v", err)
		}
	})
	err := rebooted(t, c, sim)
	requireUnknown(t, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	patient(t, c)
	require.NoError(t, c.Reboot(t.Context(), engine.Machine{Node: "node-10"}, nil))
	require.Len(t, sim.Done(civosim.HardReboots), 1)
}

func TestTheGatewayServesCivogoOnly(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	gw, err := openGateway(t.Context(), c.o.APIURL, apiKey, nil)
	require.NoError(t, err)
	defer gw.close()
	get := func(token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gw.url+"/v2/instances/i-1?region="+region, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusForbidden, get(apiKey), "the real key opens nothing here")
	require.Empty(t, sim.Calls())
	require.Equal(t, http.StatusOK, get(gw.token))
	require.Equal(t, http.StatusForbidden, get(gw.token), "one request a gateway")
	require.Len(t, sim.Calls(), 1)
}

// TestTheCallerHasTheLastWord: the machine was looked up and the connection is established, and
// still nothing leaves.
func TestTheCallerHasTheLastWord(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	err := c.Reboot(t.Context(), node1, func() error { return errors.New("no longer the leader") })
	requireRefused(t, err, reasonWithheld, "no longer the leader")
	require.Empty(t, sim.CallsTo(civosim.HardReboots))
	require.NoError(t, c.Reboot(t.Context(), node1, func() error { return nil }))
	require.Len(t, sim.CallsTo(civosim.HardReboots), 1)
}
