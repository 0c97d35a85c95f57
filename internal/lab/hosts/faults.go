package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Stop stops the host's kubelet, and with it the API server that it runs. Nobody starts it again.
func (h *Host) Stop(ctx context.Context) error {
	h.broken.Store(true)
	_, err := h.Run(ctx, "systemctl", "stop", KubeletUnit)
	return err
}

// stopAll stops the processes of a unit, those that begin meanwhile included, and ends when none of them runs.
const stopAll = `for n in $(seq 600); do
  systemctl kill --signal=STOP "$1" || exit
  runs=
  for p in /proc/[0-9]*; do
    if grep -qs "/$1" "$p/cgroup" && ! grep -qs '^State:[[:space:]]*[TtZX]' "$p/status" && [ -e "$p" ]; then runs=$p; fi
  done
  [ -n "$runs" ] || exit 0
  sleep 0.1
done
echo "$runs of $1 does not stop" >&2
exit 1`

// Hang has the host's kubelet hang, and all that it runs: ports are open, and nothing answers. Its unit says that it is
// running.
func (h *Host) Hang(ctx context.Context) error {
	h.broken.Store(true)
	_, err := h.Run(ctx, "sh", "-c", stopAll, "sh", KubeletUnit)
	return err
}

// DieAgainAfterEachRestart has the kubelet die now and soon after each start from now on, whoever starts it.
func (h *Host) DieAgainAfterEachRestart(ctx context.Context) error {
	h.broken.Store(true)
	if err := h.write(diesPath, 0o644, nil); err != nil {
		return err
	}
	_, err := h.Run(ctx, "systemctl", "kill", "--signal=KILL", KubeletUnit)
	return err
}

// LiveAgain ends what DieAgainAfterEachRestart began.
func (h *Host) LiveAgain() error {
	return h.hosts.mounts.do(func() error {
		if err := os.Remove(filepath.Join(h.root, diesPath)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("letting the kubelet of host %s live: %w", h.Name, err)
		}
		return nil
	})
}

// SSHDead stops the host's sshd: connections are refused.
func (h *Host) SSHDead(ctx context.Context) error {
	h.mute.Store(true)
	_, err := h.Run(ctx, "systemctl", "stop", "ssh.socket", "ssh.service")
	return err
}

// SSHHangs has the host's sshd hang: connections are taken, and nobody says anything.
func (h *Host) SSHHangs(ctx context.Context) error {
	h.mute.Store(true)
	_, err := h.Run(ctx, "systemctl", "kill", "--signal=STOP", "ssh.service")
	return err
}

// SSHAgain starts the host's sshd anew, after SSHDead and SSHHangs and with the key that it has now.
func (h *Host) SSHAgain(ctx context.Context) error {
	if _, err := h.Run(ctx, "systemctl", "restart", "ssh.service"); err != nil {
		return err
	}
	return h.awaitSSH(ctx)
}

// patience is how long something of a host's is waited for that only a fault keeps from coming.
const patience = 5 * time.Minute

// Reboot reboots the host as a person there does, and returns when it is in another boot and answers by SSH.
func (h *Host) Reboot(ctx context.Context) error {
	before, err := h.BootID(ctx)
	if err != nil {
		return err
	}
	_, _ = h.Run(ctx, "systemctl", "reboot") // which may end the command as well
	return h.AwaitBootAfter(ctx, before)
}

// BootID is the ID of the boot that the host is in.
func (h *Host) BootID(ctx context.Context) (string, error) {
	id, err := h.Run(ctx, "cat", "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(id), err
}

// AwaitBootAfter returns when the host is in another boot than that, and answers by SSH.
func (h *Host) AwaitBootAfter(ctx context.Context, before string) error {
	last := errors.New("nothing asked yet")
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var id string
		if id, last = h.BootID(ctx); last == nil && id == before {
			last = errors.New("it is still in the boot before")
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for host %s to boot again: %w (%w)", h.Name, err, last)
	}
	return h.awaitSSH(ctx)
}

// NeverAnswersReboots has the host do what Drydock asks for when that is a reboot, and not say so.
func (h *Host) NeverAnswersReboots() error {
	h.tampered.Store(true)
	return h.installHelper(map[string]string{`	echo "rebooting $now"`: `	sleep 600`})
}

// WrongHostKey gives the host another key than KnownHostsFile has, as if another machine had its address.
func (h *Host) WrongHostKey(ctx context.Context) error {
	if err := h.newHostKey(); err != nil {
		return err
	}
	return h.SSHAgain(ctx)
}

// RightHostKey has KnownHostsFile know the keys that the hosts have now.
func (h *Hosts) RightHostKey() error { return h.keys.writeKnownHosts(h.hosts) }

// Unplug takes the host off the network, without a word to anybody; Plug ends it.
func (h *Host) Unplug() error { return h.hosts.network.plug(h.number, false) }

// Plug puts the host onto the network again.
func (h *Host) Plug() error { return h.hosts.network.plug(h.number, true) }

// up says that the host is on and stays on: one that goes down still runs, and may even answer.
func (h *Host) up(ctx context.Context) bool {
	state, _ := h.Run(ctx, "systemctl", "is-system-running") // an error as well when a unit has failed: what it printed counts
	switch strings.TrimSpace(state) {
	case "initializing", "starting", "running", "degraded":
		return true
	}
	return false
}

// Heal ends every fault of the host: it is on and plugged in, its sshd answers under the key that it has now, and its
// kubelet runs.
func (h *Host) Heal(ctx context.Context) error {
	if err := h.Plug(); err != nil {
		return err
	}
	if err := h.LiveAgain(); err != nil {
		return err
	}
	if !h.up(ctx) {
		h.Off()
		if err := h.On(ctx); err != nil {
			return err
		}
	}
	if h.tampered.Swap(false) {
		if err := h.installHelper(nil); err != nil {
			return err
		}
	}
	if h.mute.Swap(false) {
		if err := h.SSHAgain(ctx); err != nil {
			return err
		}
	}
	if h.broken.Swap(false) {
		if _, err := h.Run(ctx, "systemctl", "restart", KubeletUnit); err != nil {
			return err
		}
	}
	if h.ControlPlane {
		return h.AwaitAPI(ctx)
	}
	return nil
}

// Heal ends every fault of every host, all at once: one host's API server waits for the others' etcd.
func (h *Hosts) Heal(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, host := range h.hosts {
		g.Go(func() error { return host.Heal(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return h.RightHostKey()
}
