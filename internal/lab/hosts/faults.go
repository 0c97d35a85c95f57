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

// Stop stops the host's kubelet and API server. Nothing starts them again by itself.
func (h *Host) Stop(ctx context.Context) error {
	h.broken.Store(true)
	_, err := h.Run(ctx, "systemctl", "stop", KubeletUnit)
	return err
}

// SIGSTOP for the processes of a unit, and for their new child processes, until none of them runs
// any more.
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

// Hang makes the host's kubelet and its static pods hang: their ports stay open, but they answer
// nothing. systemd still shows the unit as running.
func (h *Host) Hang(ctx context.Context) error {
	h.broken.Store(true)
	_, err := h.Run(ctx, "sh", "-c", stopAll, "sh", KubeletUnit)
	return err
}

// DieAgainAfterEachRestart makes the kubelet end now and soon after each later start.
func (h *Host) DieAgainAfterEachRestart(ctx context.Context) error {
	h.broken.Store(true)
	if err := h.write(diesPath, 0o644, nil); err != nil {
		return err
	}
	_, err := h.Run(ctx, "systemctl", "kill", "--signal=KILL", KubeletUnit)
	return err
}

// LiveAgain ends the effect of DieAgainAfterEachRestart.
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

// SSHHangs makes the host's sshd hang: it accepts connections and sends nothing.
func (h *Host) SSHHangs(ctx context.Context) error {
	h.mute.Store(true)
	_, err := h.Run(ctx, "systemctl", "kill", "--signal=STOP", "ssh.service")
	return err
}

// SSHAgain restarts the host's sshd after SSHDead or SSHHangs, with the host's current key.
func (h *Host) SSHAgain(ctx context.Context) error {
	if _, err := h.Run(ctx, "systemctl", "restart", "ssh.service"); err != nil {
		return err
	}
	return h.awaitSSH(ctx)
}

// Bounds a wait that takes long only if something is broken.
const patience = 5 * time.Minute

// Reboot reboots the host as a person logged in on it would, and returns when it answers over SSH
// again.
func (h *Host) Reboot(ctx context.Context) error {
	before, err := h.BootID(ctx)
	if err != nil {
		return err
	}
	_, _ = h.Run(ctx, "systemctl", "reboot") // an error is expected: the reboot may end the command as well
	return h.AwaitBootAfter(ctx, before)
}

// BootID returns the ID of the host's current boot.
func (h *Host) BootID(ctx context.Context) (string, error) {
	id, err := h.Run(ctx, "cat", "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(id), err
}

// AwaitBootAfter waits until the host has another boot ID than before, and answers over SSH.
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

// NeverAnswersReboots makes the host carry out Drydock's reboots without answering.
func (h *Host) NeverAnswersReboots() error {
	h.tampered.Store(true)
	return h.installHelper(map[string]string{`	echo "rebooting $now"`: `	sleep 600`})
}

// WrongHostKey gives the host another SSH key than the one in KnownHostsFile, as if another machine
// had its address.
func (h *Host) WrongHostKey(ctx context.Context) error {
	if err := h.newHostKey(); err != nil {
		return err
	}
	return h.SSHAgain(ctx)
}

// RightHostKey writes the hosts' current keys to KnownHostsFile.
func (h *Hosts) RightHostKey() error { return h.keys.writeKnownHosts(h.hosts) }

// Unplug disconnects the host from the network, without notice to the host. Plug connects it again.
func (h *Host) Unplug() error { return h.hosts.network.plug(h.number, false) }

// Plug reconnects the host to the network.
func (h *Host) Plug() error { return h.hosts.network.plug(h.number, true) }

// A host that is shutting down still runs, and may even answer, so it does not count as up.
func (h *Host) up(ctx context.Context) bool {
	state, _ := h.Run(ctx, "systemctl", "is-system-running") // only the output counts: the command also fails if some unit has failed
	switch strings.TrimSpace(state) {
	case "initializing", "starting", "running", "degraded":
		return true
	}
	return false
}

// Heal ends every fault of the host.
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

// Heal ends every fault of every host, at the same time, because the API server of one host waits
// for etcd on the others.
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
