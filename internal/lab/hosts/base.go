package hosts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"drydock.dev/drydock/internal/lab/programs"
)

// In addition to Debian's minimal installation.
const (
	release  = "bookworm"
	packages = "systemd,systemd-sysv,dbus,openssh-server,iproute2,sudo"
)

// A script that makes a fresh tree boot within seconds and always in the same way. Every host gets
// its own SSH keys and machine ID later. User is the account that Drydock uses.
const settle = `set -e
useradd --create-home --shell /bin/bash ` + User + `
rm -f /etc/ssh/ssh_host_* /etc/machine-id
touch /etc/machine-id
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  systemd-tmpfiles-clean.timer systemd-logind.service getty.target console-getty.service systemd-timesyncd.service \
  systemd-update-utmp.service systemd-update-utmp-runlevel.service; do ln -sf /dev/null /etc/systemd/system/$unit; done
mkdir -p /etc/systemd/journald.conf.d /var/log/journal
printf '[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\nSystemMaxUse=64M\n' >/etc/systemd/journald.conf.d/lab.conf
printf 'UseDNS no\nPasswordAuthentication no\nMaxStartups 100\n' >/etc/ssh/sshd_config.d/lab.conf
rm -rf /var/cache/apt/* /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/*
`

type tree struct{ packages, settle string }

func (o Options) tree() tree {
	if o.Pods {
		return tree{packages + "," + podPackages, settle + podSettle}
	}
	return tree{packages, settle}
}

func (t tree) name() string {
	sum := sha256.Sum256([]byte(release + t.packages + t.settle + runtime.GOARCH))
	return "hosts-" + hex.EncodeToString(sum[:])[:16]
}

// All hosts share the tree and only read it.
func (t tree) base(ctx context.Context, out io.Writer) (string, error) {
	dir, err := programs.Keep(ctx, out, t.name(), func(ctx context.Context, dir string) error {
		fmt.Fprintln(out, "making the tree of the hosts from Debian's packages (once, a few minutes)")
		return t.make(ctx, treeIn(dir))
	})
	return treeIn(dir), err
}

// The folder itself is readable only by this user, but a root file system must be readable by all.
func treeIn(dir string) string { return filepath.Join(dir, "tree") }

func (t tree) make(ctx context.Context, dir string) error {
	if err := apart(ctx, "debootstrap", "--variant=minbase", "--include="+t.packages, release, dir); err != nil {
		return fmt.Errorf("installing Debian's packages, which needs a mirror of them: %w", err)
	}
	if err := apart(ctx, "chroot", dir, "/bin/sh", "-c", t.settle); err != nil {
		return fmt.Errorf("adapting the tree: %w", err)
	}
	return os.Chmod(dir, 0o755)
}

// No mount and no process remains, even if this process is killed.
func apart(ctx context.Context, args ...string) error {
	return onThread(func() error { // the thread must not end before the program
		cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("running %s: %w\n%s", args[0], err, text[max(0, len(text)-2000):])
		}
		return nil
	})
}
