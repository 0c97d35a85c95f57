package hosts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/remediations/rescue/apiserver"
)

const (
	defaultAPIPort = 6443
	// A caller waits 5 s for the results, so one observation must take less.
	defaultLook = 4 * time.Second
	// maxCA, maxHeader and maxBody are in bytes.
	maxCA, maxHeader, maxBody = 1 << 20, 16 << 10, 16 << 10
)

// ControlPlaneOptions configures a ControlPlane.
type ControlPlaneOptions struct {
	// Hosts are the hosts that run an API server. Required.
	Hosts []Host
	// Port is the TCP port of the API servers. The default is 6443.
	Port int
	// CAFile is a PEM file, read again for each observation. If it is empty, CA has the
	// certificates. One of the two is required: the authorities of the operating system are never
	// used.
	CAFile string
	CA     []byte
	// Timeout limits one observation of all API servers. The default is 4 s.
	Timeout time.Duration
	Now     func() time.Time
}

// ControlPlane observes API servers: it requests /readyz from each of them.
type ControlPlane struct{ o ControlPlaneOptions }

// NewControlPlane checks the options. It sends no request.
func NewControlPlane(o ControlPlaneOptions) (*ControlPlane, error) {
	if o.Port == 0 {
		o.Port = defaultAPIPort
	}
	if o.Timeout == 0 {
		o.Timeout = defaultLook
	}
	switch {
	case len(o.Hosts) == 0 || len(o.Hosts) > apiserver.MaxControlPlaneHosts:
		return nil, fmt.Errorf("configuring the control plane: there are %d hosts; write between 1 and %d", len(o.Hosts), apiserver.MaxControlPlaneHosts)
	case o.Port < 1 || o.Port > 65535:
		return nil, fmt.Errorf("configuring the control plane: %d is not a port", o.Port)
	case o.Timeout < 0:
		return nil, errors.New("configuring the control plane: the time limit is negative")
	case o.Now == nil:
		return nil, errors.New("configuring the control plane: the clock is missing")
	}
	for i, h := range o.Hosts {
		if err := h.check(); err != nil {
			return nil, fmt.Errorf("configuring the control plane: host %q: %w", clip(h.Name), err)
		}
		if slices.ContainsFunc(o.Hosts[:i], func(other Host) bool { return other.Name == h.Name }) {
			return nil, fmt.Errorf("configuring the control plane: host %q is named twice", h.Name)
		}
	}
	c := &ControlPlane{o: o}
	if _, err := c.authorities(); err != nil {
		return nil, fmt.Errorf("configuring the control plane: %w", err)
	}
	return c, nil
}

// Host returns the control-plane host with that name, or false.
func (c *ControlPlane) Host(name string) (Host, bool) {
	i := slices.IndexFunc(c.o.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, false
	}
	return c.o.Hosts[i], true
}

// Sights requests /readyz from the API servers of all hosts, at all their addresses, in parallel.
// The result is by host name. A host is ready if one address says so, failing if all addresses
// fail, and otherwise unknown.
func (c *ControlPlane) Sights(ctx context.Context) map[string]apiserver.HostSight {
	at := c.o.Now()
	roots, err := c.authorities()
	if err != nil {
		return c.all(at, err)
	}
	look, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	client := newAsker(roots)
	defer client.CloseIdleConnections()
	seen := make([][]apiserver.HostSight, len(c.o.Hosts))
	var all sync.WaitGroup
	for i, h := range c.o.Hosts {
		seen[i] = make([]apiserver.HostSight, len(h.Addresses))
		for j, address := range h.Addresses {
			all.Go(func() { seen[i][j] = c.ask(look, client, h.Name, address, at) })
		}
	}
	all.Wait()
	if err := ctx.Err(); err != nil { // the caller ended the observation, which shows nothing about the hosts
		return c.all(at, err)
	}
	out := map[string]apiserver.HostSight{}
	for i, h := range c.o.Hosts {
		out[h.Name] = combine(h, seen[i])
	}
	return out
}

func (c *ControlPlane) all(at time.Time, err error) map[string]apiserver.HostSight {
	out := map[string]apiserver.HostSight{}
	for _, h := range c.o.Hosts {
		out[h.Name] = apiserver.HostSight{Host: h.Name, State: apiserver.HostUnknown, Why: "the API server was not queried: " + clip(err.Error()), At: at}
	}
	return out
}

func combine(h Host, seen []apiserver.HostSight) apiserver.HostSight {
	out := seen[0]
	if len(seen) == 1 {
		return out
	}
	var why []string
	for i, s := range seen {
		if s.State == apiserver.HostReady {
			return s
		}
		if s.State != apiserver.HostFailing {
			out.State = s.State
		}
		why = append(why, h.Addresses[i]+": "+s.Why)
	}
	out.Why = clip(strings.Join(why, "; "))
	return out
}

func (c *ControlPlane) ask(ctx context.Context, client *http.Client, name, address string, at time.Time) apiserver.HostSight {
	target := url.URL{Scheme: "https", Host: net.JoinHostPort(address, strconv.Itoa(c.o.Port)), Path: "/readyz"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return apiserver.HostSight{Host: name, State: apiserver.HostUnknown, Why: clip(err.Error()), At: at}
	}
	req.Header.Set("User-Agent", "drydock")
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return apiserver.SightOf(name, 0, err, at)
	}
	defer func() { _ = resp.Body.Close() }()
	s := apiserver.SightOf(name, resp.StatusCode, nil, at)
	if s.State == apiserver.HostFailing {
		if checks := failingChecks(resp.Body); checks != "" {
			s.Why += ": " + checks + " failed"
		}
	}
	return s
}

// failingChecks returns up to five names. The lines of failed checks begin with [-] in the answer
// of /readyz.
func failingChecks(body io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(body, maxBody))
	var out []string
	for l := range strings.Lines(string(text)) {
		if check, ok := strings.CutPrefix(l, "[-]"); ok && len(out) < 5 {
			check, _, _ = strings.Cut(check, " ")
			out = append(out, check)
		}
	}
	return clip(strings.Join(out, ", "))
}

// newAsker follows no redirect and uses no proxy, so an answer is always from the host itself.
func newAsker(roots *x509.CertPool) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:             nil,
			DialContext:       (&net.Dialer{}).DialContext,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
		},
	}
}

func (c *ControlPlane) authorities() (*x509.CertPool, error) {
	pem := c.o.CA
	from := "the cluster's own CA"
	if c.o.CAFile != "" {
		var err error
		if pem, err = secretfile.Read("the CA file", c.o.CAFile, maxCA); err != nil {
			return nil, err
		}
		from = "the CA file " + c.o.CAFile
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM; without one Drydock cannot trust an API server", from)
	}
	return pool, nil
}
