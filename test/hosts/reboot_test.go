package hosts

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	client "drydock.dev/drydock/remediations/providers/hosts"
)

// rebooting returns Drydock's configuration for the step reboot: these hosts serve it for their
// nodes, and Civo for all others. The plan has only this step. wait is how long one attempt waits
// for its proof.
func (y *yard) rebooting(attempts int, wait string, names ...any) map[string]any {
	c := y.config(map[string]any{
		"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "3s", "cooldown": "0s",
		"witness": []any{map[string]any{"ready": false}},
		"plan":    []any{map[string]any{"step": "reboot", "wait": wait, "attempts": attempts}},
	})
	served := c["providers"].(map[string]any)["hosts"].(map[string]any)
	served["reboot"] = true
	served["nodeSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": names}}}
	return c
}

// reboots returns a function that counts the host's boots from now on. It returns how many there
// were, and the attempts of Drydock among them.
func (y *yard) reboots(name string) func() (boots int, attempts []string) {
	y.t.Helper()
	look := func() (int, []string) {
		h := y.hosts.Host(name)
		boots, err := h.Boots(y.t.Context())
		require.NoError(y.t, err)
		attempts, err := h.RebootAttempts(y.t.Context())
		require.NoError(y.t, err)
		return len(boots), attempts
	}
	bootsBefore, attemptsBefore := look()
	return func() (int, []string) {
		boots, attempts := look()
		made := []string{}
		for _, a := range attempts[len(attemptsBefore):] {
			made = append(made, numbered(a))
		}
		return boots - bootsBefore, made
	}
}

// The whole chain in a cluster with two kinds of machines. One kubelet ends on a host that is
// rebooted over SSH, another one on a machine of Civo. Each node is rebooted once, by its own
// provider, and its new boot ID proves the cure.
func TestEachNodeIsRebootedByItsOwnProvider(t *testing.T) {
	y := newYard(t)
	own, civo, other := y.reboots("worker-1"), y.reboots("worker-2"), y.reboots("cp-1")
	before := y.node("worker-1").Status.NodeInfo.BootID
	y.run(y.rebooting(1, wait.String(), "worker-1"))
	for _, name := range []string{"worker-1", "worker-2"} {
		require.NoError(t, y.hosts.Host(name).Stop(t.Context()))
	}

	e, f := y.ended("worker-1"), y.ended("worker-2")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, remediations.OutcomeRecovered, f.Outcome, f.Why)
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	boots, attempts := own()
	require.Equal(t, 1, boots)
	require.Equal(t, []string{e.ID + "-0-1"}, attempts, "the host's journal shows what the record claims")
	said, err := y.hosts.Host("worker-1").Run(t.Context(), "journalctl", "--identifier=drydock", "--output=cat", "--no-pager")
	require.NoError(t, err)
	require.Contains(t, said, "Drydock asks systemd to reboot this host, for attempt "+e.ID+"-0-1")
	require.NotEqual(t, before, y.node("worker-1").Status.NodeInfo.BootID)
	boots, attempts = civo()
	require.Equal(t, 1, boots)
	require.Empty(t, attempts, "Civo took its power away")
	boots, _ = other()
	require.Zero(t, boots)
}

// Drydock dies when its intent is on the Node and before the call: that attempt is never made, the
// next one is.
func TestKilledBetweenTheIntentAndTheReboot(t *testing.T) {
	y := newYard(t)
	proxy, err := y.lab.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	reboots := y.reboots("worker-1")
	c := y.rebooting(4, wait.String(), "worker-1")
	p := c["policies"].([]any)[0].(map[string]any) // it is unknown whether the first attempt was made, so its time must pass
	p["plan"] = append([]any{map[string]any{"step": "reboot", "wait": soon.String(), "attempts": 1}}, p["plan"].([]any)...)
	d := y.runAt(proxy, c)
	proxy.After(killOn(d, "worker-1", remediations.PhaseActing)) //nolint:bodyclose // the proxy closes it
	require.NoError(t, y.hosts.Host("worker-1").Stop(t.Context()))
	lab.AwaitEnd(t, d.Process)
	proxy.After(nil)
	boots, attempts := reboots()
	require.Zero(t, boots)
	require.Empty(t, attempts, "the call was not made")
	require.NoError(t, y.lab.Restart(t.Context(), d))

	e := y.ended("worker-1")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Greater(t, len(e.Steps), 1)
	boots, attempts = reboots()
	require.Equal(t, 1, boots)
	require.Equal(t, []string{fmt.Sprintf("%s-1-%d", e.ID, len(e.Steps)-1)}, attempts)
}

// The host reboots without answering, and Drydock dies. There is one reboot, and the new boot ID
// proves it.
func TestARebootWhoseAnswerIsLostIsOne(t *testing.T) {
	for name, killed := range map[string]bool{"lost": false, "lost, and Drydock killed": true} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			reboots := y.reboots("worker-2")
			require.NoError(t, y.hosts.Host("worker-2").NeverAnswersReboots())
			d := y.run(y.rebooting(2, wait.String(), "worker-2"))
			before, err := y.hosts.Host("worker-2").BootID(t.Context())
			require.NoError(t, err)
			require.NoError(t, y.hosts.Host("worker-2").Stop(t.Context()))
			require.NoError(t, y.hosts.Host("worker-2").AwaitBootAfter(t.Context(), before))
			if killed {
				d.Kill()
				require.NoError(t, y.lab.Restart(t.Context(), d))
			}

			e := y.ended("worker-2")

			require.Contains(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeSelfRecovered}, e.Outcome, e.Why)
			require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
			boots, attempts := reboots()
			require.Equal(t, 1, boots)
			require.Equal(t, []string{e.ID + "-0-1"}, attempts)
			if !killed {
				require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
				y.awaitEvent("worker-2", "the reboot may have been done")
			}
		})
	}
}

// When the command arrives, the host is in another boot than when the intent was written. So it is
// not rebooted. A boot takes longer than an intent is valid. So the test makes the host show the
// kernel's boot ID in place of the one that its machine has mounted. When the first ID is back, a
// later call reboots the host. That call belongs to the same attempt or, on a machine that was too
// busy to answer in time, to a later one.
func TestAHostThatHasBootedMeanwhileIsNotRebooted(t *testing.T) {
	y := newYard(t)
	proxy, err := y.lab.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	reboots := y.reboots("worker-1")
	run := func(command string) error {
		_, err := y.hosts.Host("worker-1").Run(context.WithoutCancel(t.Context()), "sh", "-ec", command)
		return err
	}
	const file = "/proc/sys/kernel/random/boot_id"
	require.NoError(t, run("cat "+file+" >/run/first"))
	meanwhile := make(chan error, 1)
	var once sync.Once
	proxy.After(func(res *http.Response) lab.Verdict {
		if writes(res, "worker-1", remediations.PhaseActing) {
			once.Do(func() { meanwhile <- run("umount " + file) })
		}
		return lab.Pass
	})
	// The time of a refused attempt passes. The first attempt has little time, and the others have
	// what a reboot may take on a busy machine.
	c := y.rebooting(4, "4m", "worker-1")
	p := c["policies"].([]any)[0].(map[string]any)
	p["plan"] = append([]any{map[string]any{"step": "reboot", "wait": soon.String(), "attempts": 1}}, p["plan"].([]any)...)
	y.runAt(proxy, c)
	require.NoError(t, y.hosts.Host("worker-1").Stop(t.Context()))

	y.awaitEvent("worker-1", "boot ID is ")

	require.NoError(t, <-meanwhile)
	boots, attempts := reboots()
	require.Zero(t, boots)
	require.Empty(t, attempts)

	require.NoError(t, run("mount --bind /run/first "+file))
	e := y.ended("worker-1")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	boots, attempts = reboots()
	require.Equal(t, 1, boots)
	require.Len(t, attempts, 1)
	require.True(t, strings.HasPrefix(attempts[0], e.ID+"-"), attempts)
}

// A command that arrives again, while the host goes down or after its boot, causes no reboot.
func TestARepeatOfARebootDoesNothing(t *testing.T) {
	c := newCaller(t, time.Second)
	host := c.hosts.Host("worker-1")
	reboots := c.reboots("worker-1")
	id, err := host.BootID(t.Context())
	require.NoError(t, err)
	reboot := func() (remediations.CallOutcome, error) {
		return c.client.Reboot(t.Context(), c.host("worker-1"), client.Clean, id, "n1-0-1", func() error { return nil })
	}
	outcome, err := reboot()
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	outcome, err = reboot() // while the host goes down
	require.Error(t, err)
	require.NotEqual(t, remediations.CallAccepted, outcome)
	require.NoError(t, host.AwaitBootAfter(t.Context(), id))
	outcome, err = reboot()
	require.ErrorIs(t, err, client.ErrBooted)
	require.Equal(t, remediations.CallRefused, outcome)
	boots, attempts := reboots()
	require.Equal(t, 1, boots)
	require.Equal(t, []string{"n1-0-1"}, attempts)

	// The control: with the ID of its present boot, the host is rebooted.
	id, err = host.BootID(t.Context())
	require.NoError(t, err)
	outcome, err = reboot()
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.NoError(t, host.AwaitBootAfter(t.Context(), id))
	boots, _ = reboots()
	require.Equal(t, 2, boots)

	outcome, err = c.client.Reboot(t.Context(), c.host("worker-1"), client.Sysrq, id, "n1-0-2", func() error { return nil })
	require.Error(t, err, "the lab's script allows no sysrq")
	require.Equal(t, remediations.CallRefused, outcome)
}
