package sidecar

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

const (
	defaultHealthTimeout  = 2 * time.Second
	defaultApproveTimeout = 10 * time.Second
	// A repair allows an observation only a few seconds.
	apiTimeout = 5 * time.Second
)

// Options says how to probe and approve one kind of gated sidecars. The default timeouts are 2 s
// for a probe, and 10 s for an approval with the request for its token.
type Options struct {
	settings.Sidecar
	// Token is called for each approval; a probe never has a token. If Token is nil, no token is
	// sent.
	Token Token
	// Client reads pods. Dynamic reads SeiNodes and creates SeiNodeTasks, and may be nil if the
	// configuration uses neither.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Registerer is for the metric drydock_sidecar_probes_total, which all Clients share. If it is
	// nil, there is no metric.
	Registerer prometheus.Registerer
	// Now is for Observation.At.
	Now func() time.Time
}

// Client probes and approves the sidecars of one kind. It is safe for concurrent use.
type Client struct {
	o          Options
	probes     *probes
	tokens     *redact.Keyring
	apiTimeout time.Duration // apiTimeout, except in tests
}

// New checks the options. It sends no request.
func New(o Options) (*Client, error) {
	if o.HealthTimeout == 0 {
		o.HealthTimeout = defaultHealthTimeout
	}
	if o.ApproveTimeout == 0 {
		o.ApproveTimeout = defaultApproveTimeout
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("configuring the sidecar provider %q: %w", o.Name, err)
	}
	o.Namespaces = slices.Clone(o.Namespaces)
	o.ApproveCodes = slices.Clone(o.ApproveCodes)
	c := &Client{o: o, tokens: newTokens(), apiTimeout: apiTimeout}
	if _, err := c.tlsConfig(netip.IPv4Unspecified()); err != nil {
		return nil, fmt.Errorf("configuring the sidecar provider %q: %w", o.Name, err)
	}
	var err error
	if c.probes, err = newProbes(o.Registerer, o.Name); err != nil {
		return nil, fmt.Errorf("configuring the sidecar provider %q: %w", o.Name, err)
	}
	return c, nil
}

func (o *Options) validate() error {
	switch {
	case o.Name == "":
		return errors.New("the name is empty")
	case o.Selector == nil || o.Selector.Empty():
		return errors.New("the selector selects every pod; select the pods that have such a sidecar")
	case o.Scheme != "http" && o.Scheme != "https":
		return fmt.Errorf("the scheme %q is neither http nor https", o.Scheme)
	case !validPort(o.Port):
		return fmt.Errorf("the port %q is neither a container port's name nor a number from 1 to 65535", o.Port)
	case o.HealthTimeout < 0 || o.ApproveTimeout < 0:
		return errors.New("a time limit is negative")
	case !validCode(o.ReadyCode) || !validCode(o.NotReadyCode) || o.ReadyCode == o.NotReadyCode:
		return fmt.Errorf("the codes %d for ready and %d for not ready are not two different HTTP status codes", o.ReadyCode, o.NotReadyCode)
	case o.Owner != "" && o.Owner != settings.OwnerSeiNode:
		return fmt.Errorf("the owner %q is neither empty nor %s", o.Owner, settings.OwnerSeiNode)
	case o.Via != settings.ViaHTTP && o.Via != settings.ViaSeiNodeTask:
		return fmt.Errorf("the via %q is neither %s nor %s", o.Via, settings.ViaHTTP, settings.ViaSeiNodeTask)
	case o.Via == settings.ViaSeiNodeTask && o.Owner != settings.OwnerSeiNode:
		return fmt.Errorf("via %s needs the owner %s", settings.ViaSeiNodeTask, settings.OwnerSeiNode)
	case o.Client == nil || o.Now == nil:
		return errors.New("the client or the clock is missing")
	case o.Owner == settings.OwnerSeiNode && o.Dynamic == nil:
		return errors.New("the client that reads SeiNodes is missing")
	}
	if err := validPath(o.HealthPath); err != nil {
		return fmt.Errorf("the health path %q %w", o.HealthPath, err)
	}
	for _, n := range o.Namespaces {
		if len(validation.IsDNS1123Label(n)) > 0 {
			return fmt.Errorf("%q is not a namespace's name", n)
		}
	}
	if o.Via == settings.ViaSeiNodeTask {
		return nil
	}
	return o.validateHTTP()
}

func (o *Options) validateHTTP() error {
	if err := validPath(o.ApprovePath); err != nil {
		return fmt.Errorf("the approve path %q %w", o.ApprovePath, err)
	}
	if o.ApproveMethod == "" || strings.ContainsFunc(o.ApproveMethod, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return fmt.Errorf("the approve method %q is not an HTTP method", o.ApproveMethod)
	}
	if len(o.ApproveCodes) == 0 || slices.ContainsFunc(o.ApproveCodes, func(c int) bool { return !validCode(c) }) {
		return fmt.Errorf("the codes for an accepted approval, %v, are not HTTP status codes", o.ApproveCodes)
	}
	return nil
}

func validCode(c int) bool { return c >= 200 && c <= 599 }

func validPort(p string) bool {
	if n, err := strconv.Atoi(p); err == nil {
		return n >= 1 && n <= 65535
	}
	return len(validation.IsValidPortName(p)) == 0
}

// p is the part of a URL after the pod's address: a path with an optional query.
func validPath(p string) error {
	u, err := url.Parse("http://pod:1" + p)
	if !strings.HasPrefix(p, "/") || err != nil || u.Fragment != "" {
		return errors.New("is not a path that begins with a slash")
	}
	return nil
}
