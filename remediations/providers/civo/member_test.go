package civo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations/engine"
)

// listedOnce is a client that has read the cluster's list; earlier calls are not counted.
func listedOnce(t *testing.T, sim *civosim.Server) (c *Client, since func() []civosim.Op) {
	t.Helper()
	c = client(t, sim.URL())
	c.memberWithin = time.Minute
	_, err := c.Find(t.Context(), node1)
	require.NoError(t, err)
	before := len(sim.Calls())
	return c, func() (ops []civosim.Op) {
		for _, call := range sim.Calls()[before:] {
			ops = append(ops, call.Op)
		}
		return ops
	}
}

func TestAListedMachineIsReadByItsIDAlone(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c, since := listedOnce(t, sim)
	in, err := c.Find(t.Context(), node1)
	require.NoError(t, err)
	require.Equal(t, []string{"i-1", "node-1", "ACTIVE"}, []string{in.ID, in.Hostname, in.Status})
	require.NoError(t, c.Reboot(t.Context(), node1, nil))
	require.NoError(t, c.Reboot(t.Context(), engine.Machine{Node: "node-10", ProviderID: "civo://i-10"}, nil))
	require.Equal(t, []civosim.Op{civosim.GetInstance, civosim.GetInstance, civosim.HardReboots, civosim.GetInstance, civosim.HardReboots}, since())
	require.Equal(t, "hard reboot i-10", sim.Done(civosim.HardReboots)[1].Done)
}

// TestAMachineOfAnotherClusterIsNotRebooted: by ID Civo shows and reboots any instance of the
// account.
func TestAMachineOfAnotherClusterIsNotRebooted(t *testing.T) {
	t.Parallel()
	sim := provider(t, func(o *civosim.Options) {
		o.Elsewhere = []civosim.Instance{{ID: "i-5", Hostname: "node-5", Status: "ACTIVE"}}
	})
	c, since := listedOnce(t, sim)
	m := engine.Machine{Node: "node-5", ProviderID: "civo://i-5"}
	requireRefused(t, c.Reboot(t.Context(), m, nil), reasonNotFound, "no instance of that ID")
	require.Equal(t, []civosim.Op{civosim.ListInstances}, since(), "it is not even asked for")
}

// TestOnlyAYesSparesTheList: after any answer about the one instance that is not exactly the
// machine, the list decides.
func TestOnlyAYesSparesTheList(t *testing.T) {
	t.Parallel()
	instance := func(id, hostname string) civosim.Fault {
		return civosim.Answer(200, map[string]any{"id": id, "hostname": hostname, "status": "ACTIVE"})
	}
	for name, f := range map[string]civosim.Fault{
		"not there":       civosim.Answer(404, map[string]any{"code": "database_instance_find", "reason": "x"}),
		"not to be seen":  civosim.Answer(403, map[string]any{"code": "new_code", "reason": "x"}),
		"another ID":      instance("i-10", "node-1"),
		"another host":    instance("i-1", "node-10"),
		"no host":         instance("i-1", ""),
		"nothing":         civosim.Answer(200, nil),
		"a list":          civosim.Answer(200, []any{map[string]any{"id": "i-1", "hostname": "node-1"}}),
		"a page":          civosim.HTML(200),
		"server error":    civosim.ServerError(),
		"cut":             civosim.Cut(),
		"decoder's panic": civosim.PanicReason(400),
		"redirect":        civosim.Redirect(),
		"too long":        civosim.Oversize(maxAnswer + 1),
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			c, since := listedOnce(t, sim)
			sim.Inject(civosim.GetInstance, f)
			require.NoError(t, c.Reboot(t.Context(), node1, nil))
			require.Equal(t, []civosim.Op{civosim.GetInstance, civosim.ListInstances, civosim.HardReboots}, since())
			require.Equal(t, "hard reboot i-1", sim.Done(civosim.HardReboots)[0].Done)
		})
	}
}

func TestAMachineThatIsGoneSinceTheListIsNotRebooted(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c, _ := listedOnce(t, sim)
	sim.Inject(civosim.GetInstance, civosim.Answer(404, map[string]any{"code": "database_instance_find", "reason": "x"}))
	sim.Inject(civosim.ListInstances, civosim.Missing("node-1"))
	requireRefused(t, c.Reboot(t.Context(), node1, nil), reasonNotFound, "no instance of that ID")
	require.Empty(t, sim.CallsTo(civosim.HardReboots))

	sim.Heal(civosim.GetInstance)
	requireRefused(t, c.Reboot(t.Context(), node1, nil), reasonNotFound, "no instance of that ID")
	require.Empty(t, sim.CallsTo(civosim.HardReboots), "the last list counts, not one before it")
}

func TestAnInstanceThatDoesNotAnswerLeavesTheListItsTime(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c, since := listedOnce(t, sim)
	c.memberWithin = 3 * time.Second
	sim.Inject(civosim.GetInstance, civosim.Hang())
	require.NoError(t, c.Reboot(t.Context(), node1, nil))
	require.Equal(t, []civosim.Op{civosim.GetInstance, civosim.ListInstances, civosim.HardReboots}, since())
}

// TestAReplacementAsksForTheListEachTime: a recycle names a hostname to Civo, and only the list
// shows which machine has it.
func TestAReplacementAsksForTheListEachTime(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c, since := listedOnce(t, sim)
	before, err := c.Look(t.Context(), node1)
	require.NoError(t, err)
	require.NoError(t, c.Recycle(t.Context(), node1, before, nil))
	require.Equal(t, []civosim.Op{civosim.ListInstances, civosim.ListPools, civosim.ListInstances, civosim.Recycle}, since())
}
