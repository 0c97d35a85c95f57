package fence

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/missing"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/signs"
)

// needs skips the test where one of Debian's programs is missing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			missing.Need(t, "DEBIAN'S FENCE AGENTS", err)
		}
	}
}

// real is a client of one of Debian's agents, for node-1.
func real(t *testing.T, agent string, options map[string]string, password string) Rebooter {
	t.Helper()
	a := settings.Agent{Program: filepath.Join("/usr/sbin", agent), Options: options, MachinesFile: file(t, "machines.csv", "uuid\n"+uuid1+"\n")}
	if password != "" {
		a.SecretFiles = map[string]string{"password": file(t, "password", password+"\n")}
	}
	d := &device{}
	d.nodes = append(d.nodes, node("node-1", uuid1))
	c, err := New(settings.Fence{Agents: []settings.Agent{a}, Timeout: time.Minute}, d.Nodes)
	require.NoError(t, err)
	return NewRebooter(c)
}

// requireRebooted reboots the machine, as the engine does, and follows its power.
func requireRebooted(t *testing.T, r Rebooter, on func() bool) {
	t.Helper()
	m := machine1
	said := r.Survey(t.Context(), m)
	require.Empty(t, said.Trouble)
	m.Before = said.Before
	require.True(t, on())
	outcome, err := r.Act(t.Context(), m, yes)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.False(t, on())
	require.Equal(t, signs.Ill, r.Testify(t.Context(), m, signs.Sign{}).Answer)
	require.Contains(t, r.Survey(t.Context(), m).Trouble, "the machine is off")
	outcome, err = r.Act(t.Context(), m, yes)
	require.Equal(t, remediations.CallRefused, outcome, "%v", err)
	require.ErrorContains(t, err, "nothing was done: the machine is off")
	done, err := r.Complete(t.Context(), m, yes)
	require.NoError(t, err)
	require.False(t, done)
	require.True(t, on())
	done, err = r.Complete(t.Context(), m, yes)
	require.NoError(t, err)
	require.True(t, done)
}

// TestDebiansDummyAgent is the library that most agents use, with a file for a machine.
func TestDebiansDummyAgent(t *testing.T) {
	t.Parallel()
	needs(t, "/usr/sbin/fence_dummy")
	power := file(t, "power", "on")
	on := func() bool {
		content, err := os.ReadFile(power)
		require.NoError(t, err)
		return string(content) == "on"
	}
	requireRebooted(t, real(t, "fence_dummy", map[string]string{"status_file": power}, ""), on)

	typed := real(t, "fence_dummy", map[string]string{"status_file": power, "statusfile": power}, "").Survey(t.Context(), machine1)
	require.Contains(t, typed.Trouble, "does not know one of its options")
	require.Contains(t, typed.Trouble, "statusfile")
	lost := real(t, "fence_dummy", map[string]string{"status_file": power + "-gone"}, "")
	require.Contains(t, lost.Survey(t.Context(), machine1).Trouble, "the machine is off", "the agent itself says so of a file that it cannot read")
}

// chassis is the power switch of the simulated BMC. The machine is a process.
const chassis = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
shift
on() { [ -s pid ] && kill -0 "$(cat pid)" 2>/dev/null; }
if [ "$1" = get ]; then
  for what in "$@"; do
    [ "$what" = power ] && { on && echo power:1 || echo power:0; }
  done
elif [ "$2" = power ]; then
  echo "$3" >> log
  if [ "$3" = 1 ]; then
    on || { setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > pid; }
  else
    on && kill -9 "$(cat pid)"
    rm -f pid
  fi
fi
exit 0
`

// bmc is a simulated BMC with IPMI over LAN, and returns its folder and the options that reach it.
func bmc(t *testing.T, password string) (folder string, options map[string]string) {
	t.Helper()
	folder = t.TempDir()
	reserved, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	port := reserved.LocalAddr().(*net.UDPAddr).Port
	require.NoError(t, reserved.Close())
	switcher := filepath.Join(folder, "chassis")
	require.NoError(t, os.WriteFile(switcher, []byte(chassis), 0o700))
	auths := ""
	for _, level := range []string{"callback", "user", "operator", "admin"} {
		auths += "  allowed_auths_" + level + " none md2 md5 straight\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "lan.conf"), fmt.Appendf(nil, `name "m1"
set_working_mc 0x20
startlan 1
  addr 127.0.0.1 %d
  priv_limit admin
%s  guid a123456789abcdefa123456789abcdef
endlan
chassis_control "%s 0x20"
user 2 true "drydock" "%s" admin 10 none md2 md5 straight
`, port, auths, switcher, password), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "emu"), []byte("mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n"), 0o600))
	sim := exec.Command("ipmi_sim", "-n", "-c", "lan.conf", "-f", "emu", "-s", folder)
	sim.Dir = folder
	require.NoError(t, sim.Start())
	t.Cleanup(func() {
		_ = sim.Process.Kill()
		_ = sim.Wait()
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), switcher, "0x20", "set", "power", "0").Run()
	})
	return folder, map[string]string{"ip": "127.0.0.1", "ipport": fmt.Sprint(port), "username": "drydock", "lanplus": "1", "cipher": "3"}
}

// TestDebiansIPMIAgent against a simulated BMC, whose power switch starts and stops a process. No
// text shows the password, which the agent itself gives to ipmitool's arguments.
func TestDebiansIPMIAgent(t *testing.T) {
	t.Parallel()
	needs(t, "/usr/sbin/fence_ipmilan", "ipmitool", "ipmi_sim")
	const password = "horse-battery-16"
	folder, options := bmc(t, password)
	on := func() bool {
		state, err := exec.Command(filepath.Join(folder, "chassis"), "0x20", "get", "power").Output()
		require.NoError(t, err)
		return string(state) == "power:1\n"
	}
	r := real(t, "fence_ipmilan", options, password)
	require.Eventually(t, func() bool { return r.Testify(t.Context(), machine1, signs.Sign{}).Answer == signs.Ill }, time.Minute, time.Millisecond, "it begins without power")
	_, err := r.Complete(t.Context(), machine1, yes)
	require.NoError(t, err)
	requireRebooted(t, r, on)
	log, err := os.ReadFile(filepath.Join(folder, "log"))
	require.NoError(t, err)
	require.Equal(t, "1\n0\n1\n", string(log), "one request to switch off")

	for what, c := range map[string]struct {
		Rebooter
		again time.Duration
	}{
		"a wrong password": {real(t, "fence_ipmilan", options, "wrong-battery-16"), remediations.AskMended}, // BMCs lock accounts
		"no ipmitool":      {real(t, "fence_ipmilan", with(options, "ipmitool_path", folder), password), remediations.AskMended},
		"nobody there":     {real(t, "fence_ipmilan", with(with(options, "ipport", "9"), "power_timeout", "1"), password), remediations.AskPassing},
	} {
		said := c.Survey(t.Context(), machine1)
		require.NotEmpty(t, said.Trouble, what)
		require.NotContains(t, said.Trouble, "battery", what)
		require.Equal(t, c.again, said.Again, what)
		outcome, err := c.Act(t.Context(), machine1, yes)
		require.Equal(t, remediations.CallRefused, outcome, what)
		require.NotErrorIs(t, err, engine.ErrAccount, what)
		require.NotContains(t, err.Error(), "battery", what)
	}
	require.True(t, on())
}

func with(options map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	for k, v := range options {
		if k != name {
			out[k] = v
		}
	}
	return out
}
