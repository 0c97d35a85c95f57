package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// bmc simulates the BMC of a node.
func (y *yard) bmc(node string, o lab.BMCOptions) *lab.BMC {
	y.t.Helper()
	b, err := y.lab.StartBMC(y.t.Context(), node, o)
	require.NoError(y.t, err)
	y.t.Cleanup(b.Close)
	return b
}

// metal returns a configuration with these BMCs, and Civo for all other nodes.
func metal(policies []any, all ...*lab.BMC) lab.DrydockOptions {
	var bmcs []any
	for _, b := range all {
		bmcs = append(bmcs, b.Config)
	}
	return lab.DrydockOptions{Config: map[string]any{
		"providers": map[string]any{"redfish": map[string]any{"timeout": "20s", "bmcs": bmcs}},
		"limits":    map[string]any{"concurrent": len(all), "startupGrace": "0s"},
		"policies":  policies,
	}}
}

// reset is a step with a hard reset. soft is a step that first asks the machine's operating system.
func reset(wait string) map[string]any {
	return map[string]any{"step": "reboot", "wait": wait, "attempts": 1}
}

func soft(wait string) map[string]any {
	return map[string]any{"step": "reboot", "wait": wait, "attempts": 2, "soft": true}
}

func resets(steps ...any) map[string]any { return policy(map[string]any{"plan": steps}) }

// for1 returns the policy for one node only.
func for1(node string, p map[string]any) map[string]any {
	p["name"], p["nodeSelector"] = "of-"+node, map[string]any{"matchLabels": map[string]any{corev1.LabelHostname: node}}
	return p
}

// kinds returns the kinds of resets that the BMC has done.
func kinds(b *lab.BMC) (out []string) {
	for _, done := range b.Resets() {
		out = append(out, done.Kind)
	}
	return out
}

// The whole chain: alert, witness, intent, the reset at the BMC, a machine that is down so long
// that its node is lost, a new boot ID, and the proof.
func TestABMCRebootsItsMachine(t *testing.T) {
	y := newYard(t)
	back := make(chan struct{})
	b := y.bmc("node-60", lab.BMCOptions{Back: back})
	d := y.run(metal([]any{resets(reset(patience))}, b))
	check, err := exec.CommandContext(t.Context(), y.lab.DrydockProgram(), "check", d.ConfigFile).Output()
	require.NoError(t, err)
	require.Contains(t, string(check), "providers.redfish carries out reboot for the 1 Node it names\n")
	before := y.node("node-60").Status.NodeInfo.BootID

	y.fail("node-60")
	y.await("node-60", "the machine is away", func(n *corev1.Node) bool {
		return remediations.ReadyCondition(n).Status == corev1.ConditionUnknown
	})
	require.Equal(t, []string{"ForceRestart"}, kinds(b))
	require.Equal(t, before, y.node("node-60").Status.NodeInfo.BootID)
	close(back)
	e := y.ended("node-60")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.NotEqual(t, before, y.node("node-60").Status.NodeInfo.BootID)
	require.Equal(t, []sim.Done{{Serial: "node-60", Kind: "ForceRestart"}}, b.Resets())
	require.Empty(t, y.civo.CallsTo(civosim.Any), "the node is not Civo's, though its spec.providerID is")
}

// Four machines at the same time are each reset as often as needed, and no more. The BMC of the
// first refuses the first request. The BMC of the second resets it, and the answer is lost. The
// operating system of the third hangs and ignores its shutdown. The fourth still shuts down.
func TestEachMachineIsResetAsOftenAsItMustBe(t *testing.T) {
	y := newYard(t)
	asked := 0
	refuses := y.bmc("node-61", lab.BMCOptions{Vendor: sim.IDRAC, Reset: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if asked++; asked == 1 {
			sim.Fail(w, http.StatusConflict, "IDRAC.2.8.RAC0720", "a job is running")
			return
		}
		next.ServeHTTP(w, r)
	}})
	loses := y.bmc("node-62", lab.BMCOptions{Vendor: sim.OpenBMC, Reset: func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}})
	hangs := y.bmc("node-64", lab.BMCOptions{Hangs: true})
	works := y.bmc("node-65", lab.BMCOptions{})
	y.run(metal([]any{
		for1("node-61", resets(reset(patience), reset(patience))), for1("node-62", resets(reset(patience), reset(patience))),
		for1("node-64", resets(soft("1m"))), for1("node-65", resets(soft(patience))),
	}, refuses, loses, hangs, works))

	y.lab.Break("node-64")
	t.Cleanup(func() { _ = y.lab.Heal(context.WithoutCancel(t.Context()), "node-64", "") })
	for _, name := range []string{"node-61", "node-62", "node-65"} {
		y.fail(name)
	}
	for name, want := range map[string]struct {
		bmc          *lab.BMC
		steps, kinds []string
	}{
		"node-61": {refuses, []string{"reboot:1", "reboot:1"}, []string{"ForceRestart"}},
		"node-62": {loses, []string{"reboot:1"}, []string{"ForceRestart"}},
		"node-64": {hangs, []string{"reboot:1", "reboot:2"}, []string{"GracefulRestart", "ForceRestart"}},
		"node-65": {works, []string{"reboot:1"}, []string{"GracefulRestart"}},
	} {
		e := y.ended(name)
		require.Equal(t, remediations.OutcomeRecovered, e.Outcome, "%s: %s", name, e.Why)
		require.Equal(t, want.steps, e.Steps.Texts(), name)
		require.Equal(t, want.kinds, kinds(want.bmc), name)
	}
	require.Equal(t, 2, asked, "one request for each attempt")
	y.awaitEvent("node-61", "RepairVerifying", "nothing was done")
}

// Drydock dies after the reset has left: before the BMC does it, or afterwards and before its
// answer. The machine is reset once.
func TestKilledAroundAResetTheMachineIsResetOnce(t *testing.T) {
	for name, done := range map[string]bool{"before it is done": false, "before its answer": true} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			var d *lab.Drydock
			asked := 0
			b := y.bmc("node-63", lab.BMCOptions{Reset: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				asked++
				if asked > 1 {
					next.ServeHTTP(w, r)
					return
				}
				if done {
					next.ServeHTTP(httptest.NewRecorder(), r)
				}
				d.Kill()
				panic(http.ErrAbortHandler)
			}})
			first := "5s" // it is unknown whether it was done, so this time passes
			if done {
				first = patience
			}
			d = y.run(metal([]any{resets(reset(first), reset(patience))}, b))

			y.fail("node-63")
			lab.AwaitEnd(t, d.Process)
			require.NoError(t, y.lab.Restart(t.Context(), d))
			e := y.ended("node-63")

			steps := []string{"reboot:1"}
			if !done {
				steps = append(steps, "reboot:1")
			}
			require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
			require.Equal(t, steps, e.Steps.Texts())
			require.Equal(t, []string{"ForceRestart"}, kinds(b))
			require.Len(t, steps, asked)
		})
	}
}

// A machine that is off is left alone, because a person may have switched it off on purpose. When
// it is switched on, it is reset.
func TestAMachineThatIsOffIsNotRebooted(t *testing.T) {
	y := newYard(t)
	b := y.bmc("node-66", lab.BMCOptions{})
	power := func(state string) {
		b.Set(sim.System{UUID: y.node("node-66").Status.NodeInfo.SystemUUID, Serial: "node-66", Power: state})
	}
	power("Off")
	d := y.run(metal([]any{resets(reset(patience))}, b))
	y.fail("node-66")
	require.Contains(t, y.held("node-66", remediations.ReasonProviderAbsent).Hold.Message, "the machine is off")
	require.Empty(t, b.Resets())

	power("On")
	d.Kill() // a restarted Drydock asks the BMC at once, and not only after some minutes
	require.NoError(t, y.lab.Restart(t.Context(), d))
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-66").Outcome)
	require.Equal(t, []string{"ForceRestart"}, kinds(b))
}

// The witness is the machine's power. A node that is not Ready is left alone while its BMC reports
// that the machine is on, and repaired when the BMC reports that it is off. The BMC gets no reset:
// the step belongs to another system, which switches the machine on.
func TestTheBMCWitnessesThatAMachineIsOff(t *testing.T) {
	y := newYard(t)
	b := y.bmc("node-74", lab.BMCOptions{})
	power := func(state string) {
		b.Set(sim.System{UUID: y.node("node-74").Status.NodeInfo.SystemUUID, Serial: "node-74", Power: state})
	}
	r, objects := y.remediator(lab.RemediatorOptions{}, "node-74")
	p := policy(map[string]any{"witness": []any{map[string]any{"provider": "notRunning"}}, "plan": []any{external(patience)}})
	o := metal([]any{p}, b)
	o.Config["providers"].(map[string]any)["external"] = map[string]any{}
	y.run(o)
	before := y.node("node-74").Status.NodeInfo.BootID

	y.fail("node-74")
	require.Contains(t, y.held("node-74", remediations.ReasonNotWitnessed).Hold.Message, `the BMC says that the machine's power is "On"`)
	require.Empty(t, r.Rebooted())

	power("Off")
	require.Eventually(t, func() bool { return len(r.Rebooted()) > 0 }, lab.Patience, 100*time.Millisecond, "the machine is rebooted that is off")
	power("On")
	e := y.ended("node-74")
	y.noneLeft(objects, "node-74")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"external:1"}, e.Steps.Texts())
	require.NotEqual(t, before, y.node("node-74").Status.NodeInfo.BootID)
	require.Equal(t, []string{e.ID + "-0-1"}, attempts(r.Rebooted()))
	require.Empty(t, b.Resets())
	require.Empty(t, y.civo.CallsTo(civosim.Any), "the node is not Civo's, though its spec.providerID is")
}
