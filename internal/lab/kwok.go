package lab

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KWOK's own stages for nodes are not used, because they make a lost node Ready by themselves, with
// the old boot ID and with transition times in the past.
//
//go:embed stages.yaml
var stages []byte

// Each address is in 127.0.0.0/8, so a process can listen on a pod's own address. Labs that run at
// the same time use the same addresses, so each listener needs a port of its own.
const podCIDR = "127.64.0.0/16"

func (l *Lab) startKWOK(ctx context.Context) error {
	proxy, err := l.NewProxy()
	if err != nil {
		return err
	}
	proxy.Before(l.cutOff)

	c := l.kubeletConfig()
	c.Host = proxy.URL()
	kubeconfig, err := l.writeKubeconfig("kwok", c)
	if err != nil {
		return err
	}
	config := filepath.Join(l.dir, "kwok-stages.yaml")
	if err := os.WriteFile(config, stages, 0o600); err != nil {
		return fmt.Errorf("writing the stages of KWOK: %w", err)
	}
	_, _, err = l.startOnPorts(ctx, 1, func(ports []int) Spec {
		return Spec{Name: "kwok", ReadyURL: "http://" + address(ports[0]) + "/healthz", Args: []string{
			"--kubeconfig=" + kubeconfig, "--config=" + config, "--manage-all-nodes",
			"--node-lease-duration-seconds=0", // 0: keepNodes renews the leases
			"--cidr=" + podCIDR,
			"--server-address=" + address(ports[0]),
		}}
	})
	return err
}

// The writes of a broken node's kubelet are refused, so the pods of a lost node stay Terminating
// until KWOK tries again after Heal.
func (l *Lab) cutOff(r *http.Request) Verdict {
	if r.Method == http.MethodGet || !l.anyFault() {
		return Pass
	}
	path := r.URL.Path
	if strings.HasPrefix(path, "/api/v1/namespaces/") && strings.Contains(path, "/pods/") && l.isBroken(l.nodeOfPod(r)) {
		return Unavailable
	}
	return Pass
}

func (l *Lab) nodeOfPod(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/")
	if len(parts) < 3 {
		return ""
	}
	pod, err := l.client.CoreV1().Pods(parts[0]).Get(r.Context(), parts[2], metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return pod.Spec.NodeName
}

func (l *Lab) anyFault() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.broken)+len(l.off) > 0
}

func (l *Lab) isBroken(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken[node] || l.off[node]
}
