package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/hosts"
)

var nodePrograms = []string{"kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr", detector, router}

const kubernetesDir = "/etc/kubernetes/"

// TemporaryDir is a folder on the kubelet's disk that each boot empties, as Debian does with /tmp.
const TemporaryDir = "/var/lib/kubelet/tmp"

// Fill is the size of a file that gives the node DiskPressure. It leaves room for containerd, which
// cannot end a container on a full disk.
const Fill = "850M"

// Shorter than the default, to fit lab.DefaultNodeGrace.
const leaseSeconds = 16

// These units are as Debian, kubeadm and containerd ship them. Pods survive when containerd or the
// kubelet ends.
const containerdUnit = `[Unit]
Description=containerd container runtime
After=network.target lab-pods.service
Requires=lab-pods.service
[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
[Install]
WantedBy=multi-user.target
`

const kubeletUnit = `[Unit]
Description=kubelet: The Kubernetes Node Agent
After=containerd.service lab-pods.service
Wants=containerd.service
Requires=lab-pods.service
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/bin/kubelet --config=` + kubernetesDir + `kubelet.yaml --kubeconfig=` + kubernetesDir + `kubelet.kubeconfig --node-ip=%s
Restart=always
RestartSec=3
KillMode=process
[Install]
WantedBy=multi-user.target
`

const proxyUnit = `[Unit]
Description=kube-proxy
After=network.target
[Service]
ExecStart=/usr/local/bin/kube-proxy --config=` + kubernetesDir + `kube-proxy.yaml
Restart=always
RestartSec=3
[Install]
WantedBy=multi-user.target
`

const containerdConfig = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '` + pauseImage + `'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['/usr/lib/cni']
conf_dir = '/etc/cni/net.d'
`

const (
	nodeUser  = "system:node:"
	nodeGroup = "system:nodes"
)

const podNetwork = "10.66.0.0/16"

func podRange(node int) string { return fmt.Sprintf("10.66.%d.0/24", node+1) }

func kubeletConfig() map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": kubernetesDir + "ca.crt"},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"cgroupDriver":             "cgroupfs", "failCgroupV1": false, "failSwapOn": false, "oomScoreAdj": 0, "resolvConf": "",
		"contentType":              "application/json", // so that a proxy may change what it writes (see SetClock)
		"nodeLeaseDurationSeconds": leaseSeconds, "nodeStatusUpdateFrequency": "4s",
		"staticPodPath":                    kubernetesDir + "manifests",
		"evictionPressureTransitionPeriod": (5 * time.Minute / Faster).String(), // of the default
	}
}

func proxyConfig(node, address, kubeconfig string) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "nftables", "clusterCIDR": podNetwork, "hostnameOverride": node, "bindAddress": address,
		"clientConnection": map[string]any{"kubeconfig": kubeconfig},
		"conntrack":        map[string]any{"maxPerCore": 0, "min": 0}, // the machine's, not the host's
		"oomScoreAdj":      0,
	})
}

func (c *Cluster) prepareNode(i int, h *hosts.Host) error {
	kubelet, err := c.kubeconfigOf(c.server(), nodeUser+h.Name, nodeGroup)
	if err != nil {
		return err
	}
	proxy, err := c.kubeconfigOf(c.server(), "system:kube-proxy")
	if err != nil {
		return err
	}
	routes, err := c.kubeconfigOf(c.server(), router, "system:masters")
	if err != nil {
		return err
	}
	config, err := yaml.Marshal(kubeletConfig())
	if err != nil {
		return fmt.Errorf("encoding the kubelet's configuration: %w", err)
	}
	proxied, err := proxyConfig(h.Name, h.Address(), kubernetesDir+"kube-proxy.kubeconfig")
	if err != nil {
		return fmt.Errorf("encoding kube-proxy's configuration: %w", err)
	}
	network, err := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": "pods",
		// Each pod has a link of its own, so that an answer to a Service's client always passes the
		// host.
		"plugins": []any{map[string]any{"type": "ptp", "ipam": map[string]any{
			"type": "host-local", "ranges": []any{[]any{map[string]any{"subnet": podRange(i)}}},
			"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
		}}},
	})
	if err != nil {
		return fmt.Errorf("encoding the network of the pods: %w", err)
	}
	monitor, err := kernelMonitor()
	if err != nil {
		return fmt.Errorf("encoding the configuration of node-problem-detector: %w", err)
	}
	files := map[string][]byte{
		kubernetesDir + "ca.crt":                      c.ca,
		kubernetesDir + "kubelet.yaml":                config,
		kubernetesDir + "kubelet.kubeconfig":          kubelet,
		kubernetesDir + "kube-proxy.yaml":             proxied,
		kubernetesDir + "kube-proxy.kubeconfig":       proxy,
		kubernetesDir + "manifests/.keep":             nil,
		"/etc/containerd/config.toml":                 []byte(containerdConfig),
		"/etc/cni/net.d/10-pods.conflist":             network,
		"/etc/systemd/system/" + hosts.ContainerdUnit: []byte(containerdUnit),
		"/etc/systemd/system/" + hosts.KubeletUnit:    fmt.Appendf(nil, kubeletUnit, h.Address()),
		"/etc/tmpfiles.d/lab.conf":                    []byte("D! " + TemporaryDir + " 0755 root root\n"),
		"/etc/systemd/system/kube-proxy.service":      []byte(proxyUnit),
		kubernetesDir + "kube-router.kubeconfig":      routes,
		"/etc/systemd/system/" + routerService:        routerUnitOf(h.Name),
		kubernetesDir + "kernel-monitor.json":         monitor,
		"/etc/systemd/system/" + detectorService:      c.detectorUnit(h.Name),
	}
	for path, data := range files {
		if err := h.Write(path, 0o600, data); err != nil {
			return err
		}
	}
	for _, unit := range []string{hosts.ContainerdUnit, hosts.KubeletUnit, "kube-proxy.service", routerService, detectorService} {
		if err := h.Enable(unit); err != nil {
			return err
		}
	}
	return c.routes(i, h)
}

// Service addresses take the default route until kube-proxy has replaced them.
func (c *Cluster) routes(i int, h *hosts.Host) error {
	lines := []string{"route add default via " + c.Hosts.Machine()}
	for other, host := range c.Hosts.All() {
		if other != i {
			lines = append(lines, fmt.Sprintf("route add %s via %s", podRange(other), host.Address()))
		}
	}
	return h.IP(lines...)
}

func importImage(ctx context.Context, h *hosts.Host, archive string) error {
	inside := "/opt/" + filepath.Base(archive)
	data, err := os.ReadFile(archive)
	if err != nil {
		return fmt.Errorf("reading an image: %w", err)
	}
	if err := h.Write(inside, 0o600, data); err != nil {
		return err
	}
	if _, err := h.Run(ctx, "ctr", "--namespace=k8s.io", "images", "import", "--local", inside); err != nil {
		return err
	}
	_, err = h.Run(ctx, "rm", inside)
	return err
}

func (c *Cluster) startNode(ctx context.Context, h *hosts.Host) error {
	if _, err := h.Run(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	if _, err := h.Run(ctx, "mkdir", TemporaryDir); err != nil {
		return err
	}
	if _, err := h.Run(ctx, "systemctl", "start", "lab-pods.service", hosts.ContainerdUnit, "kube-proxy.service"); err != nil {
		return err
	}
	for _, archive := range c.archives {
		if err := importImage(ctx, h, archive); err != nil {
			return err
		}
	}
	// No registry has these images, so a full disk must not make the kubelet remove them.
	names, err := h.Run(ctx, "ctr", "--namespace=k8s.io", "images", "list", "--quiet")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		if _, err := h.Run(ctx, "ctr", "--namespace=k8s.io", "images", "label", name, "io.cri-containerd.pinned=pinned"); err != nil {
			return err
		}
	}
	_, err = h.Run(ctx, "systemctl", "start", hosts.KubeletUnit, routerService, detectorService)
	return err
}
