package hosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"drydock.dev/drydock/internal/lab/programs"
)

const (
	KubeletUnit    = "kubelet.service"
	ContainerdUnit = "containerd.service"
	OtherUnit      = "frr.service" // not shipped by anyone, for restart-unit
)

// Units are all of them.
var Units = []string{KubeletUnit, ContainerdUnit, OtherUnit}

// It restarts the kubelet as kubeadm's unit does, but sooner. The static pods are in the unit's
// control group, so they end with it.
const kubeletUnit = `[Unit]
Description=kubelet: The Kubernetes Node Agent
After=network.target
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/bin/kubelet --config=` + configPath + `
Restart=always
RestartSec=3
TimeoutStopSec=10
[Install]
WantedBy=multi-user.target
`

const otherUnit = `[Unit]
Description=%s
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
`

func (h *Host) installUnits() error {
	if err := h.write("/etc/systemd/system/"+KubeletUnit, 0o644, []byte(kubeletUnit)); err != nil {
		return err
	}
	for _, unit := range []string{ContainerdUnit, OtherUnit} {
		if err := h.write("/etc/systemd/system/"+unit, 0o644, fmt.Appendf(nil, otherUnit, unit)); err != nil {
			return err
		}
		if err := h.enable(unit); err != nil {
			return err
		}
	}
	return nil
}

// Enable makes the unit start at each boot.
func (h *Host) Enable(unit string) error { return h.enable(unit) }

func (h *Host) enable(unit string) error {
	return h.hosts.mounts.do(func() error {
		wants := filepath.Join(h.root, "etc/systemd/system/multi-user.target.wants")
		if err := os.MkdirAll(wants, 0o755); err != nil {
			return fmt.Errorf("enabling %s on host %s: %w", unit, h.Name, err)
		}
		if err := os.Symlink("/etc/systemd/system/"+unit, filepath.Join(wants, unit)); err != nil {
			return fmt.Errorf("enabling %s on host %s: %w", unit, h.Name, err)
		}
		return nil
	})
}

func (h *Hosts) buildKubelet(ctx context.Context) (string, error) {
	binary := filepath.Join(h.dir, "bin", "kubelet")
	// The program must be static, because the host may have another libc than this machine.
	if err := programs.Compile(ctx, binary, "./internal/lab/hosts/kubelet"); err != nil {
		return "", err
	}
	return binary, nil
}
