package cluster

import (
	"encoding/json"
	"fmt"
	"time"
)

const detector = "nodeproblemdetector"

const detectorService = "node-problem-detector.service"

// KernelLog is what a host's node-problem-detector reads in place of the kernel's log, which is the
// real machine's. It is empty after a boot.
const KernelLog = "/run/kernel.log"

const detectorUnit = `[Unit]
Description=node-problem-detector
After=network.target
StartLimitIntervalSec=0
[Service]
ExecStartPre=/usr/bin/touch ` + KernelLog + `
ExecStart=/usr/local/bin/` + detector + ` --config.system-log-monitor=` + kubernetesDir + `kernel-monitor.json --hostname-override=%s --k8s-exporter-heartbeat-period=%dms --prometheus-port=0 --port=0 '--apiserver-override=%s?inClusterConfig=false&auth=` + kubernetesDir + `kubelet.kubeconfig'
Restart=always
RestartSec=3
[Install]
WantedBy=multi-user.target
`

// The program's default.
const detectorHeartbeat = 5 * time.Minute

// KernelLine is a line of KernelLog.
func KernelLine(message string) string {
	return fmt.Sprintf("%s kernel: [    1.000000] %s", time.Now().UTC().Format(time.Stamp), message)
}

// The parts of node-problem-detector's config/kernel-monitor.json and readonly-monitor.json that a
// shipped rule uses, for a file.
func kernelMonitor() ([]byte, error) {
	type m = map[string]any
	condition := func(kind, reason, message string) m { return m{"type": kind, "reason": reason, "message": message} }
	permanent := func(kind, reason, pattern string) m {
		return m{"type": "permanent", "condition": kind, "reason": reason, "pattern": pattern}
	}
	return json.Marshal(m{
		"plugin":       "filelog",
		"pluginConfig": m{"timestamp": "^.{15}", "message": `kernel: \[.*\] (.*)`, "timestampFormat": time.Stamp},
		"logPath":      KernelLog, "lookback": "5m", "bufferSize": 10, "source": "kernel-monitor",
		"conditions": []m{
			condition("KernelDeadlock", "KernelHasNoDeadlock", "kernel has no deadlock"),
			condition("XfsShutdown", "XfsHasNotShutDown", "XFS has not shutdown"),
			condition("ReadonlyFilesystem", "FilesystemIsNotReadOnly", "Filesystem is not read-only"),
		},
		"rules": []m{
			{"type": "temporary", "reason": "TaskHung", "pattern": `task [\S ]+:\w+ blocked for more than \w+ seconds\.`},
			permanent("KernelDeadlock", "DockerHung", `task docker:\w+ blocked for more than \w+ seconds\.`),
			permanent("XfsShutdown", "XfsHasShutdown", `XFS .* Shutting down filesystem.?`),
			permanent("ReadonlyFilesystem", "FilesystemIsReadOnly", `Remounting filesystem read-only`),
		},
	})
}

func (c *Cluster) detectorUnit(node string) []byte {
	return fmt.Appendf(nil, detectorUnit, node, (detectorHeartbeat / Faster).Milliseconds(), c.server())
}
