package hosts

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/internal/lab"
)

// User is the account on the hosts that may restart units.
const User = "drydock"

// SSHPort is the port of a host's sshd.
const SSHPort = 22

// Host is one host of the cluster.
type Host struct {
	Name         string
	ControlPlane bool

	hosts   *Hosts
	number  int // the last byte of its address
	network *namespace
	root    string // the path of its file system in the mount namespace
	disk    string // only with Options.Pods: the path of its disk in the mount namespace
	key     ssh.Signer
	probe   *http.Client // the client for checks of its API server

	// Faults that Heal cannot detect: the kubelet's early end, sshd, and the helper script.
	broken, mute, tampered atomic.Bool

	mu      sync.Mutex
	process *lab.Process // nil if the host is off
}

// Address returns the host's IP address.
func (h *Host) Address() string { return h.hosts.network.address(h.number).String() }

// Disk and network exist even while the host is off.
func (h *Host) build(tree, layers string) (err error) {
	if h.network, err = h.hosts.network.connect(h.number); err != nil {
		return err
	}
	err = h.hosts.mounts.do(func() error {
		h.root, err = mountOverlay(tree, filepath.Join(layers, h.Name))
		if err == nil && h.hosts.options.Pods {
			h.disk, err = mountDisk(filepath.Join(layers, h.Name))
		}
		return err
	})
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // rand.Read never returns an error
	if err := h.write("/etc/machine-id", 0o444, []byte(hex.EncodeToString(id)+"\n")); err != nil {
		return err
	}
	if err := h.write("/etc/hostname", 0o644, []byte(h.Name+"\n")); err != nil {
		return err
	}
	// sudo must be able to resolve the host's own name.
	if err := h.write("/etc/hosts", 0o644, []byte("127.0.0.1 localhost\n127.0.1.1 "+h.Name+"\n")); err != nil {
		return err
	}
	install := h.installUnits
	if h.hosts.options.Pods {
		install = h.preparePods
	}
	if err := install(); err != nil {
		return err
	}
	return h.installSSH()
}

// Write writes a file on the host. The host may be on or off.
func (h *Host) Write(path string, mode fs.FileMode, data []byte) error {
	return h.write(path, mode, data)
}

func (h *Host) write(path string, mode fs.FileMode, data []byte) error {
	err := h.hosts.mounts.do(func() error { return place(filepath.Join(h.root, path), mode, data) })
	if err != nil {
		return fmt.Errorf("writing %s of host %s: %w", path, h.Name, err)
	}
	return nil
}

// place is atomic, so that a reader gets either the old or the new content.
func place(path string, mode fs.FileMode, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, mode); err != nil {
		return err
	}
	if err := os.Chmod(path+".new", mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// This script becomes the machine. Its second process is the first process of a process namespace
// and dies together with the script. So does everything on the host.
const boot = `for group in $1; do echo $$ >"$group/cgroup.procs" || exit 1; done; shift; exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc "$@"`

// On switches the machine on and returns when it answers over SSH.
func (h *Host) On(ctx context.Context) error {
	if err := h.makeGroups(); err != nil {
		return fmt.Errorf("booting host %s, which must be off: %w", h.Name, err)
	}
	args := []string{
		"--mount=" + h.hosts.mounts.path(), "--net=" + h.network.path(), "--", "sh", "-c", boot, "boot", strings.Join(h.groups(), " "),
		"systemd-nspawn", "--quiet", "--directory=" + h.root, "--boot", "--register=no", "--keep-unit", "--machine=" + h.Name,
		"--console=pipe", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
	}
	// If the machine has both versions of control groups, a host uses only the second.
	env := []string{"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1"}
	if h.hosts.options.Pods {
		args, env = append(args, h.podArgs()...), podEnv
	}
	for name, path := range h.hosts.programs {
		args = append(args, "--bind-ro="+path+":/usr/local/bin/"+name)
	}
	p, err := lab.StartProcess(ctx, lab.Spec{
		Name: "host " + h.Name, Path: "nsenter", Args: args, Log: filepath.Join(h.hosts.LogDir(), h.Name+".log"),
		Env: env,
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.process = p
	h.mu.Unlock()
	go h.reboot(p)
	if err := h.awaitSSH(ctx); err != nil {
		return fmt.Errorf("booting host %s: %w; %s", h.Name, err, p.LogEnd())
	}
	return nil
}

const rebooted = 133

// After each reboot of its system the machine starts again, with a new boot ID, until it is
// switched off. If a start fails, the next try follows a second later.
func (h *Host) reboot(p *lab.Process) {
	for {
		var exit *exec.ExitError
		if err := p.Wait(context.Background()); !errors.As(err, &exit) {
			return // the system has powered off
		} else if exit.ExitCode() != rebooted {
			time.Sleep(time.Second)
		}
		for !h.onAgain(p) {
			if h.off(p) {
				return
			}
			time.Sleep(time.Second)
		}
	}
}

func (h *Host) off(p *lab.Process) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.process != p
}

func (h *Host) onAgain(p *lab.Process) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process != p {
		return false
	}
	h.awaitEmpty()
	return h.makeGroups() == nil && p.Start(context.Background()) == nil
}

func (h *Host) awaitEmpty() {
	_ = wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		gone := true
		for _, group := range h.groups() {
			removeGroup(group)
			_, err := os.Stat(group)
			gone = gone && err != nil
		}
		return gone, nil
	})
}

func (h *Host) awaitSSH(ctx context.Context) error {
	last := errors.New("nothing asked yet")
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = h.greeting(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for its sshd: %w (%w)", err, last)
	}
	return nil
}

func (h *Host) greeting(ctx context.Context) error {
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(h.Address(), strconv.Itoa(SSHPort)))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "SSH-2.0-") {
		err = fmt.Errorf("port %d says %q", SSHPort, line)
	}
	return err
}

// Off switches the machine off, and returns when nothing runs on it. Its disk stays.
func (h *Host) Off() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil {
		return
	}
	h.process.Kill()
	h.awaitEmpty()
	h.process = nil
}

func (h *Host) groups() []string {
	var groups []string
	for _, dir := range h.hosts.groups {
		groups = append(groups, filepath.Join(dir, h.Name))
	}
	return groups
}

func (h *Host) makeGroups() error {
	for _, group := range h.groups() {
		if err := makeGroup(group); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) remove() {
	h.Off()
	if h.network != nil {
		h.network.close()
	}
}

// Run runs a command as root on the host, without SSH, and returns the output.
func (h *Host) Run(ctx context.Context, args ...string) (string, error) {
	cmd, err := h.command(ctx, args...)
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("running %s on host %s: %w: %s%s", strings.Join(args, " "), h.Name, err, out.String(), errs.String())
	}
	return out.String(), nil
}

// Without the shell, nsenter itself would wait. A host that shuts down stops all its commands, and
// nsenter stops itself when its command is stopped. Nothing would continue it, so neither the
// command nor the host would end.
const inside = `"$@"; exit`

// Bounding is an argument of setpriv for a command on a host. Without it the command has the
// capabilities of this process, and could set the clock of the real machine, which all hosts share.
const Bounding = "--bounding-set=-sys_time,-wake_alarm,-sys_module,-sys_rawio,-syslog"

func (h *Host) command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	pid, err := h.init()
	if err != nil {
		return nil, fmt.Errorf("running %s on host %s: %w", args[0], h.Name, err)
	}
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target=" + strconv.Itoa(pid), "--all", "--no-fork", "--", "setpriv", Bounding, "sh", "-c", inside, "sh"}, args...)...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	return cmd, nil
}

// init returns the process ID of the host's systemd. unshare started systemd-nspawn, which started
// this systemd.
func (h *Host) init() (int, error) {
	h.mu.Lock()
	p := h.process
	h.mu.Unlock()
	if p == nil {
		return 0, errors.New("it is off")
	}
	pid := p.PID()
	for range 2 {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		children := strings.Fields(string(data))
		if err != nil {
			return 0, fmt.Errorf("it is off: %w", err)
		}
		if len(children) != 1 {
			return 0, fmt.Errorf("it is off, or not yet on: process %d has the children %v", pid, children)
		}
		if pid, err = strconv.Atoi(children[0]); err != nil {
			return 0, err
		}
	}
	return pid, nil
}
