package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const podPackages = "iptables,ipset,nftables,ca-certificates,runc,containernetworking-plugins,kmod,procps,conntrack,ethtool,socat,mount"

// These units would write to the kernel, which is that of the real machine.
const podSettle = `
for unit in systemd-sysctl.service systemd-modules-load.service systemd-udevd.service systemd-binfmt.service; do
  ln -sf /dev/null /etc/systemd/system/$unit
done
mkdir -p /var/lib/kubelet /var/lib/containerd
`

// Version 1 of control groups, and a /proc/sys that is read-only except for network settings, so
// that the host cannot change the kernel of the real machine.
var podEnv = []string{"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=0", "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network"}

// The clock, the modules and the kernel's log belong to the real machine, so a host has no
// capability for them. The kubelet reads the kernel's log to find processes that were killed
// because memory was exhausted. On a host it reads an empty file.
func (h *Host) podArgs() []string {
	return []string{
		"--capability=all", "--drop-capability=CAP_SYS_TIME,CAP_WAKE_ALARM,CAP_SYS_MODULE,CAP_SYS_RAWIO,CAP_SYSLOG",
		"--system-call-filter=@known", "--bind=/dev/null:/dev/kmsg",
		"--bind=" + filepath.Join(h.disk, "kubelet") + ":/var/lib/kubelet",
		"--bind=" + filepath.Join(h.disk, "containerd") + ":/var/lib/containerd",
	}
}

// The disk is in memory, and uses only what was written.
const diskSize = "1g"

// containerd's overlays cannot be on the host's overlay. A test can fill this disk without filling
// that of the real machine.
func mountDisk(dir string) (string, error) {
	disk := filepath.Join(dir, "disk")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of a host's disk: %w", err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size="+diskSize+",mode=755"); err != nil {
		return "", fmt.Errorf("mounting a host's disk: %w", err)
	}
	for _, name := range []string{"kubelet", "containerd"} {
		if err := os.Mkdir(filepath.Join(disk, name), 0o711); err != nil {
			return "", fmt.Errorf("making a host's disk: %w", err)
		}
	}
	return disk, nil
}

var needed = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"}

// The hierarchies of version 1 that have a needed controller or the name systemd, with this
// process's group.
func hierarchies() (map[string]string, error) {
	own, err := ownGroups()
	if err != nil {
		return nil, err
	}
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("looking for what hosts need of the kernel: %w", err)
	}
	defer mounts.Close()
	found, parents := map[string]bool{}, map[string]string{}
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[2] != "cgroup" {
			continue
		}
		for _, option := range strings.Split(fields[3], ",") {
			group, there := own[option]
			if there && (slices.Contains(needed, option) || option == "name=systemd") {
				found[option], parents[fields[1]] = true, filepath.Join(fields[1], group)
			}
		}
	}
	if missing := slices.DeleteFunc(append(slices.Clone(needed), "name=systemd"), func(c string) bool { return found[c] }); len(missing) > 0 {
		return nil, fmt.Errorf("looking for what hosts with pods need of the kernel: version 1 of control groups is not mounted for %s; "+
			"with version 2 alone, hosts with pods have never been tried", strings.Join(missing, ", "))
	}
	return parents, nil
}

func ownGroups() (map[string]string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("looking for this process's control groups: %w", err)
	}
	groups := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] == "" {
			continue
		}
		for _, controller := range strings.Split(fields[1], ",") {
			groups[controller] = fields[2]
		}
	}
	if len(groups) == 0 {
		return nil, errors.New("looking for this process's control groups: it is in none of version 1")
	}
	return groups, nil
}

// The kubelet requires these sysctls and writes each that has another value. On a host that would
// change the real machine. So files with the required values are mounted over them, and the kubelet
// has nothing to write.
var kernelSettings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// This unit makes the control groups writable at each boot, because systemd-nspawn mounts them
// read-only.
const podsUnit = "lab-pods.service"

const podsUnitText = `[Unit]
Description=prepare this host for pods
DefaultDependencies=no
Before=` + ContainerdUnit + " " + KubeletUnit + `
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-pods
[Install]
WantedBy=multi-user.target
`

const podsScript = `#!/bin/sh
set -eu
awk '$3 == "cgroup" {print $2}' /proc/self/mounts | while read -r dir; do mount -o remount,bind,rw "$dir"; done
cd /usr/local/lib/lab-sys
find . -type f | while read -r file; do mount --bind "$file" "/proc/sys/$file"; done
`

func (h *Host) preparePods() error {
	files := map[string]string{"/etc/systemd/system/" + podsUnit: podsUnitText, "/usr/local/sbin/lab-pods": podsScript}
	for name, value := range kernelSettings {
		files["/usr/local/lib/lab-sys/"+name] = value + "\n"
	}
	for path, text := range files {
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(path, "/usr/local/sbin/") {
			mode = 0o755
		}
		if err := h.write(path, mode, []byte(text)); err != nil {
			return err
		}
	}
	return h.enable(podsUnit)
}
