package hosts

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	lab "drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/hosts"
	"drydock.dev/drydock/remediations/providers/hosts/settings"
	"drydock.dev/drydock/remediations/rescue/apiserver"
)

// caller is Drydock's SSH client for the hosts.
type caller struct {
	*yard
	client *hosts.Client
}

func newCaller(t *testing.T, hold time.Duration) *caller { return newCallerFor(t, hold, time.Minute) }

// newCallerFor does the same as newCaller, with a time limit for one call.
func newCallerFor(t *testing.T, hold, timeout time.Duration) *caller {
	t.Helper()
	y := newYard(t)
	client, err := hosts.New(hosts.Options{Hosts: settings.Hosts{
		User: lab.User, Port: 22, KeyFile: y.hosts.KeyFile(), KnownHostsFile: y.hosts.KnownHostsFile(), Sudo: true, Units: lab.Units, Timeout: timeout,
	}, Hold: hold})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &caller{y, client}
}

func (c *caller) host(name string) hosts.Host {
	return hosts.Host{Name: name, Addresses: []string{c.hosts.Host(name).Address()}}
}

func (c *caller) restart(name, unit, attempt string) (remediations.CallOutcome, error) {
	return c.client.Restart(c.t.Context(), c.host(name), unit, attempt, func() error { return nil })
}

func TestARestartIsOneAndStandsInTheHostsJournal(t *testing.T) {
	const hold = 10 * time.Minute // long, because a busy machine may take long while the hold is there
	c := newCaller(t, hold)
	before, err := c.client.Status(t.Context(), c.host("worker-1"), lab.KubeletUnit)
	require.NoError(t, err)
	require.True(t, before.Active)
	outcome, err := c.restart("worker-1", lab.KubeletUnit, "n1-1-1")
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	after, err := c.client.Status(t.Context(), c.host("worker-1"), lab.KubeletUnit)
	require.NoError(t, err)
	require.NotEqual(t, before.InvocationID, after.InvocationID)
	require.Equal(t, "n1-1-1", after.Restarting)

	// systemd itself refuses another call while the hold is there: from another replica, or a
	// second attempt.
	other := &caller{c.yard, must(t, hosts.Options{Hosts: settings.Hosts{
		User: lab.User, Port: 22, KeyFile: c.hosts.KeyFile(), KnownHostsFile: c.hosts.KnownHostsFile(), Sudo: true, Units: lab.Units, Timeout: time.Minute,
	}, Hold: hold})}
	outcome, err = other.restart("worker-1", lab.KubeletUnit, "n2-1-1")
	require.ErrorIs(t, err, hosts.ErrBusy)
	require.Equal(t, remediations.CallRefused, outcome)
	_, err = c.hosts.Host("worker-1").Run(t.Context(), "systemctl", "stop", "drydock-restart-"+lab.KubeletUnit) // ends the hold
	require.NoError(t, err)
	c.await("the host takes another restart", func() bool {
		outcome, _ := other.restart("worker-1", lab.KubeletUnit, "n3-1-1")
		return outcome == remediations.CallAccepted
	})
	require.Equal(t, []string{lab.ByDrydock("n1-1-1"), lab.ByDrydock("n3-1-1")}, c.restarts("worker-1"))
}

func must(t *testing.T, o hosts.Options) *hosts.Client {
	t.Helper()
	client, err := hosts.New(o)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// If two calls arrive at the same moment, one of them is accepted.
func TestOfTwoRestartsAtOnceSystemdTakesOne(t *testing.T) {
	c := newCaller(t, time.Minute)
	other := &caller{c.yard, must(t, hosts.Options{Hosts: settings.Hosts{
		User: lab.User, Port: 22, KeyFile: c.hosts.KeyFile(), KnownHostsFile: c.hosts.KnownHostsFile(), Sudo: true, Units: lab.Units, Timeout: time.Minute,
	}, Hold: time.Minute})}
	var meet sync.WaitGroup
	meet.Add(2)
	outcomes := make(chan remediations.CallOutcome, 2)
	for attempt, who := range map[string]*caller{"n1-1-1": c, "n2-1-1": other} {
		go func() {
			outcome, err := who.client.Restart(t.Context(), who.host("worker-2"), lab.KubeletUnit, attempt, func() error {
				meet.Done()
				meet.Wait()
				return nil
			})
			t.Log(attempt, outcome, err)
			outcomes <- outcome
		}()
	}
	require.ElementsMatch(t, []remediations.CallOutcome{remediations.CallAccepted, remediations.CallRefused},
		[]remediations.CallOutcome{<-outcomes, <-outcomes})
	require.Len(t, c.restarts("worker-2"), 1)
}

func TestAHangingKubeletIsRestartedAndItsLastWordsAreRead(t *testing.T) {
	c := newCaller(t, 3*time.Second)
	require.NoError(t, c.hosts.Host("cp-3").Hang(t.Context()))
	require.Error(t, c.hosts.Host("cp-3").Ready(t.Context()))
	text, err := c.client.Evidence(t.Context(), c.host("cp-3"), lab.KubeletUnit)
	require.NoError(t, err)
	require.Contains(t, text, " kubelet[")
	outcome, err := c.restart("cp-3", lab.KubeletUnit, "n1-1-1")
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.NoError(t, c.hosts.Host("cp-3").AwaitAPI(t.Context()))
	require.Equal(t, []string{lab.ByDrydock("n1-1-1")}, c.restarts("cp-3"))
}

// A unit that the user's configuration allows is restarted. The host gets no request about a unit
// that is not allowed. A unit that the host does not have is reported as missing.
func TestOnlyUnitsOfTheListAreRestarted(t *testing.T) {
	c := newCaller(t, time.Second)
	outcome, err := c.restart("worker-1", lab.OtherUnit, "n1-1-1")
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	restarts, err := c.hosts.Host("worker-1").Restarts(t.Context(), lab.OtherUnit)
	require.NoError(t, err)
	require.Equal(t, lab.ByDrydock("n1-1-1"), restarts[len(restarts)-1].By)
	c.await("its hold is over", func() bool {
		s, err := c.client.Status(t.Context(), c.host("worker-1"), lab.OtherUnit)
		return err == nil && s.Restarting == ""
	})
	outcome, err = c.restart("worker-1", "ssh.service", "n1-1-2")
	require.Error(t, err)
	require.Equal(t, remediations.CallRefused, outcome)
	run := func(command string) {
		_, err := c.hosts.Host("worker-1").Run(context.WithoutCancel(t.Context()), "sh", "-ec", command)
		require.NoError(t, err)
	}
	const file = "/etc/systemd/system/" + lab.OtherUnit
	run("systemctl stop " + lab.OtherUnit + "; mv " + file + " /root; systemctl daemon-reload")
	t.Cleanup(func() {
		run("mv /root/" + lab.OtherUnit + " " + file + "; systemctl daemon-reload; systemctl start " + lab.OtherUnit)
	})
	_, err = c.client.Status(t.Context(), c.host("worker-1"), lab.OtherUnit)
	require.ErrorIs(t, err, hosts.ErrNoUnit)
}

func TestADeadSSHIsUnreachableWithinTheTimeAndNothingIsRestarted(t *testing.T) {
	for name, fault := range map[string]func(*lab.Host) error{
		"refuses":   func(h *lab.Host) error { return h.SSHDead(context.Background()) },
		"hangs":     func(h *lab.Host) error { return h.SSHHangs(context.Background()) },
		"unplugged": (*lab.Host).Unplug,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCallerFor(t, time.Second, 5*time.Second)
			require.NoError(t, fault(c.hosts.Host("worker-1")))
			began := time.Now()
			outcome, err := c.restart("worker-1", lab.KubeletUnit, "n1-1-1")
			require.ErrorIs(t, err, hosts.ErrUnreachable)
			require.Equal(t, remediations.CallRefused, outcome)
			require.Less(t, time.Since(began), 2*time.Minute, "it is bounded by the client's 5 s, on a loaded machine")
			require.Empty(t, c.restarts("worker-1"))
		})
	}
}

func TestAHostWithAnotherKeyGetsNoCommand(t *testing.T) {
	c := newCaller(t, time.Second)
	logins := func() int {
		log, err := c.hosts.Host("worker-2").Run(t.Context(), "journalctl", "--no-pager", "--unit=ssh.service")
		require.NoError(t, err)
		return strings.Count(log, "Accepted publickey")
	}
	before := logins() // the logins of earlier tests
	require.NoError(t, c.hosts.Host("worker-2").WrongHostKey(t.Context()))
	outcome, err := c.restart("worker-2", lab.KubeletUnit, "n1-1-1")
	require.ErrorIs(t, err, hosts.ErrHostKey)
	require.ErrorContains(t, err, "SHA256:")
	require.Equal(t, remediations.CallRefused, outcome)
	require.Empty(t, c.restarts("worker-2"))
	require.Equal(t, before, logins(), "it never logged in")
	require.NoError(t, c.hosts.RightHostKey())
	c.await("the new key is read", func() bool {
		outcome, _ := c.restart("worker-2", lab.KubeletUnit, "n1-1-2")
		return outcome == remediations.CallAccepted
	})
	require.Greater(t, logins(), before, "the control: a login would have been seen")
}

// Over SSH, the account may do what Drydock does and nothing else.
func TestTheKeyOpensTheClosedListAlone(t *testing.T) {
	c := newCaller(t, time.Second)
	for _, line := range []string{"id", "sudo -n id", "/usr/bin/systemctl stop kubelet.service", "sudo -n /usr/bin/systemctl restart ssh.service", ""} {
		out, err := c.hosts.SSH(t.Context(), "worker-1", line)
		require.Error(t, err, "%q: %s", line, out)
		require.Contains(t, out, "refused", "%q", line)
	}
}

func TestEachAPIServerIsSeenByItsOwnWord(t *testing.T) {
	c := newCaller(t, time.Second)
	var all []hosts.Host
	for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
		all = append(all, c.host(name))
	}
	sees, err := hosts.NewControlPlane(hosts.ControlPlaneOptions{Hosts: all, CAFile: c.hosts.CAFile(), Now: time.Now})
	require.NoError(t, err)
	states := func() map[string]apiserver.HostState {
		out := map[string]apiserver.HostState{}
		for name, s := range sees.Sights(t.Context()) {
			out[name] = s.State
		}
		return out
	}
	is := func(want ...apiserver.HostState) func() bool {
		return func() bool {
			s := states()
			return s["cp-1"] == want[0] && s["cp-2"] == want[1] && s["cp-3"] == want[2]
		}
	}
	const ready, failing = apiserver.HostReady, apiserver.HostFailing
	c.await("all are ready", is(ready, ready, ready))
	require.NoError(t, c.hosts.Host("cp-1").Stop(t.Context()))
	c.await("a stopped one fails", is(failing, ready, ready))
	require.NoError(t, c.hosts.Host("cp-2").Hang(t.Context()))
	c.await("without a majority of etcd, the one that runs fails as well", is(failing, failing, failing))
	outcome, err := c.restart("cp-2", lab.KubeletUnit, "n1-1-1")
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	c.await("one restart gives two back", is(failing, ready, ready))
}
