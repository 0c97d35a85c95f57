package hosts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
)

// APIServerPort is the API server's port on a host of the control plane.
const APIServerPort = 6443

// How long an API server may take to answer whether it is ready. Long enough for a busy machine.
const answers = 3 * time.Second

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

const (
	kubernetesDir = "/etc/kubernetes"
	configPath    = kubernetesDir + "/kubelet.json"
	diesPath      = kubernetesDir + "/dies"
	caPath        = kubernetesDir + "/pki/ca.crt"
	certPath      = kubernetesDir + "/pki/kubelet.crt"
	keyPath       = kubernetesDir + "/pki/kubelet.key"
)

// StartCluster starts the kubelets, and returns when every API server and every node is ready. It
// can be the lab's option APIServers. The URL is that of the load balancer.
func (h *Hosts) StartCluster(ctx context.Context, c lab.Credentials) (url string, err error) {
	ca, err := os.ReadFile(c.Files.CA)
	if err != nil {
		return "", fmt.Errorf("reading the lab's authority: %w", err)
	}
	h.caFile = c.Files.CA
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	for _, host := range h.hosts {
		host.probe = &http.Client{Timeout: answers, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool},
		}}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, host := range h.hosts {
		g.Go(func() error {
			if err := host.join(gctx, c, ca); err != nil {
				return fmt.Errorf("starting the kubelet of host %s: %w", host.Name, err)
			}
			if !host.ControlPlane {
				return nil
			}
			return host.AwaitAPI(gctx)
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	if h.balancer, err = newBalancer(h.controlPlane()); err != nil {
		return "", err
	}
	return h.balancer.url(), h.awaitNodes(ctx, c, ca)
}

func (h *Hosts) controlPlane() (out []*Host) {
	for _, host := range h.hosts {
		if host.ControlPlane {
			out = append(out, host)
		}
	}
	return out
}

// APIServer returns the URL of the host's own API server, which may be down.
func (h *Host) APIServer() string { return fmt.Sprintf("https://%s:%d", h.Address(), APIServerPort) }

func (h *Host) join(ctx context.Context, c lab.Credentials, ca []byte) error {
	cert, key, err := c.Issue(nil, "system:node:"+h.Name, "system:nodes")
	if err != nil {
		return err
	}
	files := map[string][]byte{caPath: ca, certPath: cert, keyPath: key}
	config := h.kubeletConfig(c)
	if h.ControlPlane {
		at, err := h.serveAPI(c, files)
		if err != nil {
			return err
		}
		env := append([]string{"/usr/bin/env"}, lab.ProgramEnv()...)
		config["Static"] = map[string][]string{"etcd": slices.Concat(env, h.etcd()), "kube-apiserver": slices.Concat(env, h.apiServer(at))}
	}
	if files[configPath], err = json.Marshal(config); err != nil {
		return fmt.Errorf("encoding the kubelet's configuration: %w", err)
	}
	for name, data := range files {
		if err := h.write(name, 0o600, data); err != nil {
			return err
		}
	}
	if err := h.enable(KubeletUnit); err != nil {
		return err
	}
	if _, err := h.Run(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	_, err = h.Run(ctx, "systemctl", "start", KubeletUnit)
	return err
}

func (h *Host) kubeletConfig(c lab.Credentials) map[string]any {
	spec := lab.NodeSpec{Name: h.Name, ProviderID: "civo://" + uuid.NewString()}
	node := spec.Node(time.Now(), c.Version)
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: h.Address()}, {Type: corev1.NodeHostName, Address: h.Name},
	}
	var servers []string
	for _, other := range h.hosts.controlPlane() {
		servers = append(servers, other.APIServer())
	}
	return map[string]any{
		"node": node, "Servers": servers, "CAFile": caPath, "CertFile": certPath, "KeyFile": keyPath,
		"LeaseSeconds": h.hosts.options.LeaseSeconds, "Dies": diesPath,
	}
}

func (h *Host) serveAPI(c lab.Credentials, files map[string][]byte) (lab.APIServerFiles, error) {
	dir := kubernetesDir + "/pki/"
	at := lab.APIServerFiles{CA: caPath, Cert: dir + "apiserver.crt", Key: dir + "apiserver.key"}
	var err error
	if files[at.Cert], files[at.Key], err = c.Issue([]net.IP{net.ParseIP(h.Address())}, "kube-apiserver-"+h.Name); err != nil {
		return at, err
	}
	for copied, from := range map[*string]string{&at.Tokens: c.Files.Tokens, &at.ServiceAccounts: c.Files.ServiceAccounts} {
		*copied = dir + path.Base(from)
		if files[*copied], err = os.ReadFile(from); err != nil {
			return at, fmt.Errorf("reading the lab's credentials: %w", err)
		}
	}
	return at, nil
}

func (h *Host) etcd() []string {
	var cluster []string
	for _, other := range h.hosts.controlPlane() {
		cluster = append(cluster, other.Name+"=http://"+other.Address()+":2380")
	}
	peer := "http://" + h.Address() + ":2380"
	return []string{
		"/usr/local/bin/etcd", "--name=" + h.Name, "--data-dir=/var/lib/etcd",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + strings.Join(cluster, ","), "--initial-cluster-state=new", "--initial-cluster-token=lab",
		"--unsafe-no-fsync",                                   // the data is in memory anyway
		"--heartbeat-interval=200", "--election-timeout=2000", // long, because few processors run all members
	}
}

func (h *Host) apiServer(files lab.APIServerFiles) []string {
	return append(append([]string{"/usr/local/bin/kube-apiserver"}, lab.APIServerArgs(files)...),
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", fmt.Sprintf("--secure-port=%d", APIServerPort),
		"--advertise-address="+h.Address(), "--shutdown-delay-duration=0s",
	)
}

// Ready returns nil if the host's own API server is ready.
func (h *Host) Ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.APIServer()+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := h.probe.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 2000)) // only for the error message
		return fmt.Errorf("%s/readyz answers %s: %s", h.APIServer(), res.Status, text)
	}
	return nil
}

// AwaitAPI returns when the host's own API server is ready.
func (h *Host) AwaitAPI(ctx context.Context) error {
	last := errors.New("nothing asked yet")
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = h.Ready(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API server of host %s: %w (%w)", h.Name, err, last)
	}
	return nil
}

// It also labels the control-plane nodes, because a kubelet may not set that label on its own Node.
func (h *Hosts) awaitNodes(ctx context.Context, c lab.Credentials, ca []byte) error {
	cert, key, err := c.Issue(nil, "hosts", "system:masters")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: h.balancer.url(), TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: cert, KeyData: key},
	})
	if err != nil {
		return fmt.Errorf("making a client of the hosts' API servers: %w", err)
	}
	for _, host := range h.hosts {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			node, err := client.CoreV1().Nodes().Get(ctx, host.Name, metav1.GetOptions{})
			return err == nil && ready(node), nil // tried again after any error
		})
		if err != nil {
			return fmt.Errorf("waiting for node %s to be Ready: %w", host.Name, err)
		}
		if !host.ControlPlane {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, controlPlaneLabel)
		if _, err := client.CoreV1().Nodes().Patch(ctx, host.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("labelling node %s: %w", host.Name, err)
		}
	}
	return nil
}

func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
