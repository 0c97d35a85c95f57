package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
)

// The times that a kubelet writes into its Node's status and Lease.
var written = regexp.MustCompile(`"(renewTime|acquireTime|lastHeartbeatTime|lastTransitionTime)":"([^"]+)"`)

// SetClock makes the kubelet's writes look as if the host's clock were ahead, or behind if
// negative. All hosts have the machine's clock, which no test may set, so a proxy changes the times
// in the writes. restore ends that.
func (c *Cluster) SetClock(ctx context.Context, h *hosts.Host, ahead time.Duration) (restore func(context.Context) error, err error) {
	proxy, err := c.proxyAs(nodeUser+h.Name, nodeGroup)
	if err != nil {
		return nil, err
	}
	proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodGet || !strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/") && !strings.HasSuffix(r.URL.Path, "/status") {
			return lab.Pass
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return lab.Reset
		}
		body = shift(body, ahead)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return lab.Pass
	})
	server, listener, err := c.expose(ctx, proxy.URL())
	if err != nil {
		proxy.Close()
		return nil, err
	}
	restore = func(ctx context.Context) error {
		err := c.pointKubelet(ctx, h, c.server())
		_ = listener.Close()
		proxy.Close()
		return err
	}
	return restore, c.pointKubelet(ctx, h, server)
}

// The length of the body stays.
func shift(body []byte, by time.Duration) []byte {
	return written.ReplaceAllFunc(body, func(match []byte) []byte {
		parts := written.FindSubmatch(match)
		at, err := time.Parse(time.RFC3339Nano, string(parts[2]))
		if err != nil {
			return match
		}
		layout := time.RFC3339
		if bytes.Contains(parts[2], []byte(".")) {
			layout = "2006-01-02T15:04:05.000000Z07:00"
		}
		return fmt.Appendf(nil, `"%s":"%s"`, parts[1], at.Add(by).UTC().Format(layout))
	})
}

func (c *Cluster) proxyAs(user string, groups ...string) (*lab.Proxy, error) {
	cert, key, err := c.credentials.Issue([]net.IP{net.ParseIP(c.Hosts.Machine())}, user, groups...)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of %s: %w", user, err)
	}
	certificates := []tls.Certificate{pair}
	return lab.NewProxy(c.APIServerURL(), &tls.Config{RootCAs: c.authorities(), Certificates: certificates}, &tls.Config{Certificates: certificates})
}

func (c *Cluster) pointKubelet(ctx context.Context, h *hosts.Host, server string) error {
	kubeconfig, err := c.kubeconfigOf(server, nodeUser+h.Name, nodeGroup)
	if err != nil {
		return err
	}
	if err := h.Write(kubernetesDir+"kubelet.kubeconfig", 0o600, kubeconfig); err != nil {
		return err
	}
	_, err = h.Run(ctx, "systemctl", "restart", hosts.KubeletUnit)
	return err
}
