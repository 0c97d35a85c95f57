package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// The same as in lab.APIServerArgs.
const serviceNetwork = "10.0.0.0/24"

func (c *Cluster) server() string {
	return fmt.Sprintf("https://%s:%d", c.Hosts.Machine(), c.options.APIServerPort)
}

func (c *Cluster) kubeconfigOf(server, user string, groups ...string) ([]byte, error) {
	cert, key, err := c.credentials.Issue(nil, user, groups...)
	if err != nil {
		return nil, err
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "lab",
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "lab"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: server, CertificateAuthorityData: c.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"lab": {ClientCertificateData: cert, ClientKeyData: key}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return text, nil
}

func (c *Cluster) authorities() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca)
	return pool
}

// startControlPlane starts etcd, the API server, the nodes, the scheduler and this network's
// kube-proxy. The lab itself starts kube-controller-manager.
func (c *Cluster) startControlPlane(ctx context.Context, credentials lab.Credentials) (_ string, err error) {
	c.credentials = credentials
	url := fmt.Sprintf("https://127.0.0.1:%d", c.options.APIServerPort)
	if c.ca, err = os.ReadFile(credentials.Files.CA); err != nil {
		return "", fmt.Errorf("reading the lab's authority: %w", err)
	}
	if err := c.startAPIServer(ctx, url); err != nil {
		return "", err
	}
	cert, key, err := credentials.Issue(nil, "cluster", "system:masters")
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca, CertData: cert, KeyData: key},
	})
	if err != nil {
		return "", fmt.Errorf("making a client of the cluster: %w", err)
	}
	if err := c.startScheduler(ctx, url); err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, host := range c.Hosts.All() {
		g.Go(func() error {
			if err := c.prepareNode(i, host); err != nil {
				return fmt.Errorf("preparing node %s: %w", host.Name, err)
			}
			if err := c.startNode(gctx, host); err != nil {
				return fmt.Errorf("starting node %s: %w", host.Name, err)
			}
			return awaitNode(gctx, client, host.Name)
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	return url, c.startProxy(ctx, url)
}

func (c *Cluster) startAPIServer(ctx context.Context, url string) error {
	dir := filepath.Join(c.dir, "control-plane")
	files := c.credentials.Files
	files.Cert, files.Key = filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
	kubeletCert, kubeletKey := filepath.Join(dir, "kubelet-client.crt"), filepath.Join(dir, "kubelet-client.key")
	cert, key, err := c.credentials.Issue([]net.IP{net.ParseIP(c.Hosts.Machine())}, "kube-apiserver")
	if err != nil {
		return err
	}
	clientCert, clientKey, err := c.credentials.Issue(nil, "kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the control plane: %w", err)
	}
	for path, data := range map[string][]byte{files.Cert: cert, files.Key: key, kubeletCert: clientCert, kubeletKey: clientKey} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("writing the certificates of the control plane: %w", err)
		}
	}
	const etcd, peers = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	if err := c.start(ctx, lab.Spec{Name: "etcd", ReadyURL: etcd + "/readyz", Args: []string{
		"--data-dir=" + filepath.Join(dir, "etcd"), "--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
		"--unsafe-no-fsync", // the data need not survive a crash of the machine
	}}); err != nil {
		return err
	}
	asks := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.authorities()}, DisableKeepAlives: true}}
	return c.start(ctx, lab.Spec{Name: "kube-apiserver", ReadyURL: url + "/readyz", ReadyClient: asks, Args: append(lab.APIServerArgs(files),
		"--etcd-servers="+etcd, "--bind-address=0.0.0.0", fmt.Sprintf("--secure-port=%d", c.options.APIServerPort),
		"--advertise-address="+c.Hosts.Machine(), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate="+kubeletCert, "--kubelet-client-key="+kubeletKey,
	)})
}

func (c *Cluster) startScheduler(ctx context.Context, url string) error {
	file, err := c.writeKubeconfig(url, "system:kube-scheduler")
	if err != nil {
		return err
	}
	return c.start(ctx, lab.Spec{Name: "kube-scheduler", Again: true, Args: []string{"--kubeconfig=" + file, "--leader-elect=false"}})
}

// Services and pods must be reachable from this process's network: the API server calls webhooks,
// and Alertmanager calls Drydock.
func (c *Cluster) startProxy(ctx context.Context, url string) error {
	file, err := c.writeKubeconfig(url, "system:kube-proxy")
	if err != nil {
		return err
	}
	// This network has no Node. kube-proxy would wait for one, so it gets the name of a node.
	first := c.Hosts.All()[0]
	config, err := proxyConfig(first.Name, c.Hosts.Machine(), file)
	if err != nil {
		return fmt.Errorf("encoding kube-proxy's configuration: %w", err)
	}
	path := filepath.Join(c.dir, "kube-proxy.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return fmt.Errorf("writing kube-proxy's configuration: %w", err)
	}
	routes := []string{"route add " + serviceNetwork + " via " + first.Address()}
	for i, host := range c.Hosts.All() {
		routes = append(routes, fmt.Sprintf("route add %s via %s", podRange(i), host.Address()))
	}
	if err := ip(ctx, routes...); err != nil {
		return err
	}
	return c.start(ctx, lab.Spec{Name: "kube-proxy", Again: true, ReadyURL: "http://" + c.Hosts.Machine() + ":10256/healthz", Args: []string{"--config=" + path}})
}

func (c *Cluster) writeKubeconfig(url, user string) (string, error) {
	text, err := c.kubeconfigOf(url, user)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, strings.TrimPrefix(user, "system:")+".kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return path, nil
}

func awaitNode(ctx context.Context, client kubernetes.Interface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, lab.Patience, true, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err == nil && remediations.Ready(node), nil // tried again after any error
	})
	if err != nil {
		return fmt.Errorf("waiting for node %s to be Ready: %w", name, err)
	}
	return nil
}
