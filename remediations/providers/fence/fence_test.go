package fence

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/signs"
)

// started returns a device and a client for it.
func started(t *testing.T) (*device, Rebooter) {
	t.Helper()
	d := newDevice(t)
	t.Cleanup(d.Close)
	return d, NewRebooter(d.client(time.Minute, false))
}

// TestAMachineIsSwitchedOffAndOnAgain: off once, and on as often as it is found off. Each change is
// seen in its status.
func TestAMachineIsSwitchedOffAndOnAgain(t *testing.T) {
	t.Parallel()
	d, r := started(t)
	m := machine1
	m.Before = r.Survey(t.Context(), m).Before
	require.NotEmpty(t, m.Before)
	outcome, err := r.Act(t.Context(), m, yes)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Equal(t, signs.Ill, r.Testify(t.Context(), m, signs.Sign{}).Answer)
	require.Equal(t, signs.Well, r.Testify(t.Context(), machine2, signs.Sign{}).Answer)

	no := errors.New("a pause was set")
	done, err := r.Complete(t.Context(), m, func() error { return no })
	require.ErrorContains(t, err, no.Error())
	require.False(t, done)
	require.Zero(t, d.ons)
	for range 2 {
		done, err = r.Complete(t.Context(), m, yes)
		require.NoError(t, err)
	}
	require.True(t, done, "its status says that it is on")
	require.Equal(t, 1, d.ons)
	require.Equal(t, []string{"1"}, d.off())
	require.Equal(t, signs.Well, r.Testify(t.Context(), m, signs.Sign{}).Answer)
}

// TestAMachineThatAPersonSwitchedOffStaysOff: after the survey, so that the agent finds it off.
func TestAMachineThatAPersonSwitchedOffStaysOff(t *testing.T) {
	t.Parallel()
	d, r := started(t)
	m := machine1
	m.Before = r.Survey(t.Context(), m).Before
	d.set(func() { d.on["1"] = false })
	outcome, err := r.Act(t.Context(), m, yes)
	require.Equal(t, remediations.CallRefused, outcome, "a refused attempt is never completed")
	require.ErrorContains(t, err, "nothing was done: the machine is off")
	require.Contains(t, r.Survey(t.Context(), m).Trouble, "the machine is off")
}

// TestAnAgentThatFailsIsNotBelieved: after a failed switch-off the outcome is unknown, and the
// error has the reason.
func TestAnAgentThatFailsIsNotBelieved(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		do      orders
		outcome remediations.CallOutcome
	}{
		"Failed: Timed out waiting to power OFF": {orders{Errors: "x: DeprecationWarning: y\n2026-11-29 14:38:22,056 ERROR: Failed: Timed out waiting to power OFF\n\nPlease use '-h' for usage\n", Code: 1}, remediations.CallUnknown},
		"Success: Powered ON":                    {orders{Out: "Success: Powered ON\n"}, remediations.CallUnknown},
		"exit code 3":                            {orders{Out: "Success: Powered OFF\n", Code: 3}, remediations.CallUnknown},
		"":                                       {orders{Out: "Success: Powered OFF\n", Errors: "a warning\n"}, remediations.CallAccepted},
	} {
		d, r := started(t)
		d.order["off"] = c.do
		outcome, err := r.Act(t.Context(), machine1, yes)
		require.Equal(t, c.outcome, outcome)
		if says != "" {
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, "the machine may be off")
			require.NotContains(t, err.Error(), "Deprecation")
			require.NotContains(t, err.Error(), "2026", "the same failure has the same one one text")
		}
	}
}

// TestWhatAnAgentIsGiven: neither arguments nor an environment, and its options and secrets on its
// standard input.
func TestWhatAnAgentIsGiven(t *testing.T) {
	t.Setenv("DRYDOCK_SECRET_OF_ANOTHER", "x")
	d, r := started(t)
	require.Empty(t, r.Survey(t.Context(), machine2).Trouble)
	got := d.got()
	require.Len(t, got, 1)
	require.Empty(t, got[0].Args)
	require.Empty(t, got[0].Env)
	require.Equal(t, "action=status\nip="+d.listen.Addr().String()+"\npassword="+secret+"\nplug=2\nusername=drydock\n", got[0].Input)

	path := r.agents[0].SecretFiles["password"]
	require.NoError(t, os.WriteFile(path, []byte("one\naction=off\n"), 0o600))
	require.Contains(t, r.Survey(t.Context(), machine2).Trouble, "has more than one line")
	require.NoError(t, os.Remove(path))
	require.Contains(t, r.Survey(t.Context(), machine2).Trouble, "no such file")
	require.Len(t, d.got(), 1)
}

// TestNothingIsLeftOfAnAgent: neither of one that does not end, ignores SIGTERM, and has started a
// process that holds its output, nor of one that ends.
func TestNothingIsLeftOfAnAgent(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]orders{
		"it hangs": {Stubborn: true, Trickle: true},
		"it ends":  {Stubborn: true, Out: "Status: ON\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, r := started(t)
			d.order["status"] = do
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said := make(chan remediations.Survey, 1)
			go func() { said <- r.Survey(ctx, machine1) }()
			holder, err := strconv.Atoi(<-d.said)
			require.NoError(t, err)
			if do.Trickle {
				require.NoError(t, syscall.Kill(holder, 0), "the control")
				cancel()
			}
			require.Equal(t, do.Trickle, (<-said).Trouble != "")
			require.Eventually(t, func() bool { return gone(holder) }, time.Minute, time.Millisecond)
		})
	}
}

// gone reports whether the process has ended. Its parent may not have waited for it yet.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// TestAnAgentThatCannotBeStartedDidNothing: the attempt is not spent.
func TestAnAgentThatCannotBeStartedDidNothing(t *testing.T) {
	t.Parallel()
	d, r := started(t)
	m := machine1
	m.Before = r.Survey(t.Context(), m).Before
	require.NoError(t, os.Remove(r.agents[0].Program))
	outcome, err := r.Act(t.Context(), m, yes)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, r.agents[0].Program+" cannot be started")
	require.Empty(t, d.off())
	_, err = New(r.Fence, d.Nodes)
	require.ErrorContains(t, err, "no such file", "nor does Drydock start so")
}

// TestAnOptionThatTheAgentDoesNotKnow: the agents' library ignores such an option, and could then
// act on another machine.
func TestAnOptionThatTheAgentDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, warns := range []bool{false, true} {
		d, r := started(t)
		do := orders{Out: "Status: ON\n", Errors: "WARNING:root:Parse error: Ignoring something else\n"}
		if warns {
			do.Errors = "WARNING:root:Parse error: Ignoring unknown option 'pulg=4'\n"
		}
		d.order["status"] = do
		said := r.Survey(t.Context(), machine1).Trouble
		require.Equal(t, warns, strings.Contains(said, "does not know one of its options"), said)
	}
}

// TestAMachineOfAnotherConfigurationIsNotTouched: Drydock was restarted with another table in the
// middle of an attempt.
func TestAMachineOfAnotherConfigurationIsNotTouched(t *testing.T) {
	t.Parallel()
	d, r := started(t)
	m := machine1
	m.Before = r.Survey(t.Context(), m).Before
	d.set(func() { d.on["1"], d.on["2"] = false, false })
	other := NewRebooter(d.client(time.Minute, false))
	other.agents[0].Program = r.agents[0].Program
	other.agents[0].rows[0].Options["plug"] = "2"
	_, err := other.Complete(t.Context(), m, yes)
	require.ErrorContains(t, err, "it now has another machine")
	outcome, err := other.Act(t.Context(), m, yes)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "it now has another machine")
	require.Zero(t, d.ons)
	_, err = r.Complete(t.Context(), m, yes)
	require.NoError(t, err)
	require.Equal(t, 1, d.ons, "the control")
}

// TestASoftRebootIsImpossible, so that the next attempt cuts the power.
func TestASoftRebootIsImpossible(t *testing.T) {
	t.Parallel()
	d, r := started(t)
	m := machine1
	m.Soft = true
	outcome, err := r.Act(t.Context(), m, yes)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorIs(t, err, engine.ErrUnable)
	require.Empty(t, d.got())
}

// TestMachinesBySelector: an option has the Node's name.
func TestMachinesBySelector(t *testing.T) {
	t.Parallel()
	d := newDevice(t)
	t.Cleanup(d.Close)
	d.on["vm-node-1"] = true
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"rack": "a"}})
	require.NoError(t, err)
	a := settings.Agent{Program: fake(t), Options: map[string]string{"ip": d.listen.Addr().String(), "plug": "vm-{node}"}, Selector: selector}
	c, err := New(settings.Fence{Agents: []settings.Agent{a}, Timeout: time.Minute}, d.Nodes)
	require.NoError(t, err)
	r := NewRebooter(c)
	require.Empty(t, r.Survey(t.Context(), machine1).Trouble)
	require.Contains(t, r.Survey(t.Context(), machine2).Trouble, "plug is not available")
	d.set(func() { d.nodes[0].Labels["rack"] = "b" })
	require.Contains(t, r.Survey(t.Context(), machine1).Trouble, "no agent of providers.fence has this node")

	two, err := New(settings.Fence{Agents: []settings.Agent{a, a}, Timeout: time.Minute}, d.Nodes)
	require.NoError(t, err)
	require.Contains(t, NewRebooter(two).Survey(t.Context(), machine2).Trouble, "providers.fence has 2 machines")
}

// TestADeviceServesOneAgentAtATime: many devices accept one session.
func TestADeviceServesOneAgentAtATime(t *testing.T) {
	t.Parallel()
	d, r := started(t)
	one, err := r.find(t.Context(), machine1)
	require.NoError(t, err)
	turn := semaphore.NewWeighted(1)
	r.devices.Store(one.device(), turn)
	require.NoError(t, turn.Acquire(t.Context(), 1))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NotEmpty(t, r.Survey(ctx, machine2).Trouble)
	require.Empty(t, d.got())
	turn.Release(1)
	require.Empty(t, r.Survey(t.Context(), machine2).Trouble)
}
