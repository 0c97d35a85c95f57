package redfish

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/redfish/settings"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
	"drydock.dev/drydock/remediations/signs"
)

// TestTheMachineIsKnownByItsUUID: in either order of bytes, in upper or lower case, and never by a
// value that many machines have.
func TestTheMachineIsKnownByItsUUID(t *testing.T) {
	t.Parallel()
	const swapped = "44454c4c-4200-1035-8054-b7c04f4d3332"
	for name, tc := range map[string]struct {
		node, bmc, pin, serial string
		refused                string
	}{
		"as it is":                       {node: uuid1, bmc: uuid1},
		"in capitals":                    {node: uuid1, bmc: strings.ToUpper(uuid1)},
		"the BMC swaps":                  {node: uuid1, bmc: swapped},
		"the firmware swaps":             {node: swapped, bmc: uuid1},
		"configured":                     {bmc: uuid1, pin: uuid1},
		"configured, swapped":            {node: swapped, bmc: uuid1, pin: uuid1},
		"another":                        {node: uuid1, bmc: uuid2, refused: "has the UUID " + uuid2 + ", but the node's machine has " + uuid1},
		"only the tail is equal":         {node: uuid1, bmc: "00000000-0042-3510-8054-b7c04f4d3332", refused: "has the UUID"},
		"the node has none":              {bmc: uuid1, refused: "systemUUID is empty; configure the machine's uuid or serialNumber"},
		"the node's is zero":             {node: "00000000-0000-0000-0000-000000000000", bmc: "00000000-0000-0000-0000-000000000000", refused: "repeats one byte"},
		"the node's is all F":            {node: "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", bmc: "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", refused: "repeats one byte"},
		"the node's is a series'":        {node: "03000200-0400-0500-0006-000700080009", bmc: "03000200-0400-0500-0006-000700080009", refused: "whole series"},
		"a series', swapped":             {node: "00020003-0004-0005-0006-000700080009", bmc: "03000200-0400-0500-0006-000700080009", refused: "whole series"},
		"the node's is none":             {node: "Not Specified", bmc: uuid1, refused: "is not a UUID"},
		"the BMC's is none":              {node: uuid1, bmc: "None", refused: "an invalid UUID"},
		"configured is another's":        {node: uuid2, bmc: uuid1, pin: uuid1, refused: "one of them belongs to another machine"},
		"a series', and a serial number": {node: "03000200-0400-0500-0006-000700080009", bmc: "03000200-0400-0500-0006-000700080009", serial: "SN-1"},
		"none, and a serial number":      {bmc: "", serial: "SN-1"},
		"another serial number":          {node: uuid1, bmc: uuid1, serial: "SN-9", refused: `the serial number "SN-1" instead of "SN-9"`},
		"a serial number, another UUID":  {node: uuid1, bmc: uuid2, serial: "SN-1", refused: "has the UUID " + uuid2},
	} {
		t.Run(name, func(t *testing.T) {
			side, url := begin(t, sim.Options{Systems: []sim.System{{UUID: tc.bmc, Serial: "SN-1"}}})
			b := bmcOf(t, "node-1", url, Basic)
			b.UUID, b.SerialNumber = tc.pin, tc.serial
			m := machine1
			m.SystemUUID = tc.node
			if tc.refused != "" {
				requireRefused(t, rebooter(t, b), side, m, tc.refused)
				return
			}
			requireReset(t, rebooter(t, b), side, m, "ForceRestart")
		})
	}
}

// TestTwoBMCsOfOneUUID: a UUID that two BMCs show identifies neither machine.
func TestTwoBMCsOfOneUUID(t *testing.T) {
	t.Parallel()
	side1, url1 := begin(t, sim.Options{})
	side2, url2 := begin(t, sim.Options{Systems: []sim.System{{UUID: uuid1, Serial: "SN-2"}}})
	one, two := bmcOf(t, "node-1", url1, Basic), bmcOf(t, "node-2", url2, Basic)
	r := rebooter(t, one, two)
	require.Empty(t, r.Survey(t.Context(), machine1).Trouble)
	requireRefused(t, r, side2, engine.Machine{Node: "node-2", SystemUUID: uuid1}, `the BMC of node "node-1" shows the same UUID`)
	two.SerialNumber = "SN-2"
	r = rebooter(t, one, two)
	outcome, err := r.Act(t.Context(), engine.Machine{Node: "node-2", SystemUUID: uuid1}, yes)
	require.NoError(t, err, "the control")
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Empty(t, side1.Resets())
}

// TestTwoNodesOfOneUUID: a UUID that two Nodes show identifies neither machine, for either BMC and
// in either order of bytes. No BMC is called.
func TestTwoNodesOfOneUUID(t *testing.T) {
	t.Parallel()
	const swapped = "44454c4c-4200-1035-8054-b7c04f4d3332"
	node := func(name, uuid string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: uuid}}}
	}
	for _, shared := range []string{uuid1, strings.ToUpper(uuid1), swapped} {
		nodes := []*corev1.Node{node("node-0", ""), node("node-1", uuid1), node("node-2", shared)}
		var failed error
		read := func(context.Context) ([]*corev1.Node, error) { return nodes, failed }
		side, url := begin(t, sim.Options{})
		with := func(change func(*BMC)) Rebooter {
			b := bmcOf(t, "node-1", url, Basic)
			if change != nil {
				change(&b)
			}
			c, err := New(Options{Redfish: settings.Redfish{BMCs: []BMC{b}, Timeout: 2 * time.Minute}, Nodes: read})
			require.NoError(t, err)
			return Rebooter{c}
		}
		requireRefused(t, with(nil), side, machine1, `Node "node-2" has the same status.nodeInfo.systemUUID `)
		require.Equal(t, signs.Unknown, with(nil).Testify(t.Context(), machine1, signs.Sign{Kind: signs.NotRunning}).Answer)
		failed = errors.New("the cache is not filled")
		requireRefused(t, with(nil), side, machine1, "could not check whether another Node has the same status.nodeInfo.systemUUID (the cache is not filled)")
		failed = nil
		requireReset(t, with(func(b *BMC) { b.SerialNumber = "SN-1" }), side, machine1, "ForceRestart")
		_, err := with(func(b *BMC) { b.UUID = uuid1 }).Act(t.Context(), machine1, yes)
		require.NoError(t, err, "what the configuration says outranks what another kubelet says")
		nodes[2].Status.NodeInfo.SystemUUID = uuid2
		outcome, err := with(nil).Act(t.Context(), machine1, yes)
		require.NoError(t, err, "the control")
		require.Equal(t, remediations.CallAccepted, outcome)
	}
}

// TestABoardThatMoved: a UUID that a BMC no longer shows does not count as another machine's.
func TestABoardThatMoved(t *testing.T) {
	t.Parallel()
	side1, url1 := begin(t, sim.Options{})
	side2, url2 := begin(t, sim.Options{Systems: []sim.System{{UUID: "7d3c5a10-1111-4222-8333-944455556666", Serial: "SN-3"}}})
	r := rebooter(t, bmcOf(t, "node-1", url1, Basic), bmcOf(t, "node-2", url2, Basic))
	require.Empty(t, r.Survey(t.Context(), machine1).Trouble)
	side1.Set(sim.System{UUID: uuid2, Serial: "SN-2"})
	side2.Set(system1)
	moved := engine.Machine{Node: "node-2", SystemUUID: uuid1}
	requireRefused(t, r, side2, moved, `the BMC of node "node-1" shows the same UUID`)
	require.Contains(t, r.Survey(t.Context(), machine1).Trouble, "has the UUID "+uuid2)
	requireReset(t, r, side2, moved, "ForceRestart")
}

// TestTheMessageAboutANodeWithoutABMC: the error says what to add.
func TestTheMessageAboutANodeWithoutABMC(t *testing.T) {
	t.Parallel()
	side, url := begin(t, sim.Options{})
	m := machine1
	m.Node = "node-9"
	requireRefused(t, rebooter(t, bmcOf(t, "node-1", url, Basic)), side, m, "no BMC is configured for this node")
}

// TestNewNamesWhatIsWrong: the Node and the option. The configuration checks what needs no file.
func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		adjust func(*BMC)
		says   string
	}{
		"no trust":      {func(b *BMC) { b.Fingerprint = "" }, "exactly one of caFile and fingerprint"},
		"two trusts":    {func(b *BMC) { b.CAFile = "/x" }, "exactly one of caFile and fingerprint"},
		"short pin":     {func(b *BMC) { b.Fingerprint = "abcd" }, "must be a SHA-256"},
		"no CA":         {func(b *BMC) { b.Fingerprint, b.CAFile = "", file(t, "ca", "no certificate") }, "the file has no certificate"},
		"CA is gone":    {func(b *BMC) { b.Fingerprint, b.CAFile = "", "/nowhere/ca" }, "/nowhere/ca"},
		"no password":   {func(b *BMC) { b.PasswordFile = "/nowhere/password" }, "/nowhere/password"},
		"empty user":    {func(b *BMC) { b.UsernameFile = file(t, "username", "\n") }, "the file is empty"},
		"colon in user": {func(b *BMC) { b.UsernameFile = file(t, "username", "a:b") }, "colon"},
		"bad UUID":      {func(b *BMC) { b.UUID = "x" }, `"x" is not a UUID`},
	} {
		t.Run(name, func(t *testing.T) {
			b := bmcOf(t, "node-1", "https://bmc", Basic)
			tc.adjust(&b)
			_, err := New(Options{Redfish: settings.Redfish{BMCs: []BMC{b}}})
			require.ErrorContains(t, err, "configuring Redfish: the BMC of node")
			require.ErrorContains(t, err, tc.says)
		})
	}
}
