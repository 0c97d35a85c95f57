package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

func TestPoliciesTable(t *testing.T) {
	code, stdout, stderr := call(t, "policies")
	require.Equal(t, cli.ExitOK, code)
	require.Empty(t, stderr)
	require.Equal(t, `NAME                            MODE      MATCH                                     NODES                   PLAN                                                                FROM
cilium-agent-not-ready          observe   remediation="cilium-agent-not-ready"      !nvidia.com/gpu.count   restart-cni 3m, reboot 10m x2, drain 30m or stop, replace 20m       shipped
cni-not-ready                   observe   remediation="cni-not-ready"               !nvidia.com/gpu.count   restart-cni 3m, reboot 10m                                          shipped
gpu-cilium-agent-not-ready      observe   remediation="cilium-agent-not-ready"      nvidia.com/gpu.count    restart-cni 3m, reboot 40m x3                                       shipped
gpu-cni-not-ready               observe   remediation="cni-not-ready"               nvidia.com/gpu.count    restart-cni 3m, reboot 40m                                          shipped
gpu-kube-proxy-not-ready        observe   remediation="kube-proxy-not-ready"        nvidia.com/gpu.count    restart-kube-proxy 3m, reboot 40m                                   shipped
gpu-mesh-forwarding-fault       observe   remediation="mesh-forwarding-fault"       nvidia.com/gpu.count    reboot 40m                                                          shipped
gpu-node-disk-pressure          observe   remediation="node-disk-pressure"          nvidia.com/gpu.count    drain 30m or stop, reboot 40m                                       shipped
gpu-node-filesystem-read-only   observe   remediation="node-filesystem-read-only"   nvidia.com/gpu.count    drain 30m or continue, reboot 40m x3                                shipped
gpu-node-heartbeat-lost         observe   remediation="node-heartbeat-lost"         nvidia.com/gpu.count    restart-kubelet 3m, reboot 40m x3                                   shipped
gpu-node-kernel-deadlock        observe   remediation="node-kernel-deadlock"        nvidia.com/gpu.count    reboot 40m x3                                                       shipped
gpu-node-not-ready              observe   remediation="node-not-ready"              nvidia.com/gpu.count    restart-kubelet 3m, reboot 40m x3                                   shipped
gpu-node-problem-detected       observe   remediation="node-problem-detected"       nvidia.com/gpu.count    drain 30m or stop, reboot 40m x2                                    shipped
gpu-node-subsystem-not-ready    observe   remediation="node-subsystem-not-ready"    nvidia.com/gpu.count    drain 30m or stop, reboot 40m x2                                    shipped
kube-proxy-not-ready            observe   remediation="kube-proxy-not-ready"        !nvidia.com/gpu.count   restart-kube-proxy 3m, reboot 10m                                   shipped
mesh-forwarding-fault           observe   remediation="mesh-forwarding-fault"       !nvidia.com/gpu.count   reboot 10m x2                                                       shipped
node-disk-pressure              observe   remediation="node-disk-pressure"          !nvidia.com/gpu.count   drain 30m or stop, replace 20m                                      shipped
node-filesystem-read-only       observe   remediation="node-filesystem-read-only"   !nvidia.com/gpu.count   drain 30m or stop, reboot 10m                                       shipped
node-gpu-count                  observe   remediation="node-gpu-count"              nvidia.com/gpu.count    reboot 40m x3                                                       shipped
node-gpu-fault                  observe   remediation="node-gpu-fault"              nvidia.com/gpu.count    drain 30m or stop, reboot 40m x2                                    shipped
node-heartbeat-lost             observe   remediation="node-heartbeat-lost"         !nvidia.com/gpu.count   restart-kubelet 3m, reboot 10m x2, drain 30m or stop, replace 20m   shipped
node-kernel-deadlock            observe   remediation="node-kernel-deadlock"        !nvidia.com/gpu.count   reboot 10m x2, drain 30m or stop, replace 20m                       shipped
node-not-ready                  observe   remediation="node-not-ready"              !nvidia.com/gpu.count   restart-kubelet 3m, reboot 10m x2, drain 30m or stop, replace 20m   shipped
node-problem-detected           observe   remediation="node-problem-detected"       !nvidia.com/gpu.count   drain 30m or stop, reboot 40m, replace 20m                          shipped
node-subsystem-not-ready        observe   remediation="node-subsystem-not-ready"    !nvidia.com/gpu.count   drain 30m or stop, reboot 10m                                       shipped
apiserver-down                  observe   remediation="apiserver-down"              hosts of API servers    restart-kubelet 1m a host, 10m in all                               shipped
mesh-leader-degraded            observe   remediation="mesh-leader-degraded"        leaders of the mesh     promote-leader 3m x2                                                shipped
mesh-pair-unreachable           observe   remediation="mesh-pair-unreachable"       leaders of the mesh     promote-leader 3m                                                   shipped
sidecar-not-ready               observe   remediation="sidecar-not-ready"           pods of its provider    mark-ready 1m x3                                                    shipped
`, stdout)
}

func TestPoliciesOfAConfiguration(t *testing.T) {
	file := write(t, "drydock.yaml", sound+`policies:
- {name: mine, match: ['a="b"'], mode: enforce, plan: [{step: drain, onTimeout: continue}]}
`)
	code, stdout, _ := call(t, "policies", "--config", file)
	require.Equal(t, cli.ExitOK, code)
	require.Regexp(t, `(?m)^mine +enforce +a="b" +all nodes +drain 30m or continue +`+file+`$`, stdout)
}

func TestPoliciesYAMLIsAConfigurationsKey(t *testing.T) {
	code, stdout, _ := call(t, "policies", "-o", "yaml")
	require.Equal(t, cli.ExitOK, code)
	file := write(t, "drydock.yaml", sound+stdout)
	code, again, _ := call(t, "policies", "-o", "yaml", "--config", file)
	require.Equal(t, cli.ExitOK, code)
	require.Equal(t, stdout, again)
}

func TestPoliciesDiffIsWhatTheConfigurationChanges(t *testing.T) {
	file := write(t, "drydock.yaml", sound+"policies: [{name: node-not-ready, mode: enforce}]\n")
	code, stdout, _ := call(t, "policies", "-o", "yaml", "--diff", "--config", file)
	require.Equal(t, cli.ExitOK, code)
	require.Equal(t, "policies:\n  - name: node-not-ready\n    # shipped: observe\n    mode: enforce\n", stdout)
	for _, args := range [][]string{{"policies", "--diff", "--config", file}, {"policies", "--diff", "-o", "yaml"}} {
		code, _, stderr := call(t, args...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, stderr, "--diff needs -o yaml and --config FILE")
	}
}

func TestPoliciesOfABadConfiguration(t *testing.T) {
	code, stdout, _ := call(t, "policies", "--config", write(t, "drydock.yaml", sound+"mode: off\n"))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stdout, `:5: mode: "off" is not one of observe, enforce`)
}
