// Package redfish reboots machines through their BMCs, and reports whether they are powered.
//
// The calls are gofish's. What v0.24.0 does, and what this package does about it:
//
//   - It has no time limits, follows redirects, and appends a link from a BMC to the address of
//     that BMC, so that "@elsewhere/…" is another host. All requests go through a transport of this
//     package (wire): only to the configured host, and never after a redirect. Each request has a
//     time limit and an answer of bounded size, and their number is bounded.
//   - Its Reset sends a POST a second time after an answer 412. It appends a target that is a whole
//     address to the BMC's own, and treats any 2xx as a success. This package posts the reset
//     itself, to a checked target, and the transport sends a single one.
//   - Its list of Systems fails as a whole if one of them does. This package reads them one by one.
//   - It does not treat a session without a token as an error. This package does.
//   - Its Logout continues without a context when the call's own has ended. Here Logout has a
//     context with a short limit.
//
// The configuration alone names a machine's BMC. Before each reset its System must prove that it is
// the node's: by its UUID, or by the serial number that the configuration pins. The reset itself
// names no machine, so only this check right before it prevents a reset of another machine.
//
// BMCs lock an account after a few wrong passwords, and one account often serves a whole rack. But
// some BMCs answer 401 now and then to good credentials. So after two 401 a BMC does not get these
// credentials again. After 401 from two BMCs no BMC does. This lasts until the files change or half
// an hour has passed. A 403 concerns the one BMC.
package redfish

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations/providers/redfish/settings"
)

const (
	// defaultTimeout bounds one request. BMCs are slow: a second for a small document is normal.
	defaultTimeout = 15 * time.Second
	// defaultTryAgain is longer than the usual lock of an account.
	defaultTryAgain = 30 * time.Minute
	// logoutWithin bounds the end of a session, because the caller waits for it.
	logoutWithin = 2 * time.Second
)

// A BMC is used as the configuration declares it.
type (
	BMC  = settings.BMC
	Auth = settings.Auth
)

// The values of Auth.
const (
	Basic   = settings.Basic
	Session = settings.Session
)

// Options configure a Client.
type Options struct {
	BMCs []BMC
	// Timeout bounds one request. Zero: 15 s.
	Timeout time.Duration
	// TryAgain is how long refused credentials are not used again. Zero: 30 min.
	TryAgain time.Duration
	// Nodes returns all Nodes of the cluster, to compare their systemUUIDs: a UUID that two Nodes
	// have identifies neither. Nil: no comparison.
	Nodes func(ctx context.Context) ([]*corev1.Node, error)
}

// Client calls BMCs, each for one call at a time. It is safe for concurrent use.
type Client struct {
	o      Options
	logout time.Duration   // how long the end of a session may take
	bmcs   map[string]*bmc // by Node

	mu      sync.Mutex
	refused map[[sha256.Size]byte]map[string]refusals // by credentials, and by the BMC's host
	barred  map[string]bar                            // by the BMC's host
	shown   map[string]showing                        // by the BMC's host
}

type bmc struct {
	BMC
	url *url.URL
	trust
	uuid section.UUID        // zero: the Node's UUID counts
	turn *semaphore.Weighted // its holder may call

	learning sync.Mutex
	learned  way
}

// New checks the options and that all files can be read. It calls no BMC. The error names the Node
// and the option.
func New(o Options) (*Client, error) {
	if o.Timeout < 0 || o.TryAgain < 0 {
		return nil, errors.New("configuring Redfish: a time limit is negative")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.TryAgain == 0 {
		o.TryAgain = defaultTryAgain
	}
	c := &Client{o: o, logout: min(logoutWithin, o.Timeout), bmcs: map[string]*bmc{}, refused: map[[sha256.Size]byte]map[string]refusals{}, barred: map[string]bar{}, shown: map[string]showing{}}
	pinned := map[section.UUID]string{}
	for _, in := range o.BMCs {
		b, err := newBMC(in)
		switch {
		case err != nil:
			return nil, fmt.Errorf("configuring Redfish: the BMC of node %q: %w", in.Node, err)
		case c.bmcs[in.Node] != nil:
			return nil, fmt.Errorf("configuring Redfish: node %q has two BMCs", in.Node)
		}
		if other, taken := pinned[b.uuid.Canonical()]; taken && b.uuid != (section.UUID{}) {
			return nil, fmt.Errorf("configuring Redfish: nodes %q and %q have the same UUID %s", other, in.Node, in.UUID)
		}
		pinned[b.uuid.Canonical()] = in.Node
		c.bmcs[in.Node] = b
	}
	return c, nil
}

func newBMC(in BMC) (*bmc, error) {
	at, err := url.Parse(in.URL)
	switch {
	case in.Node == "":
		return nil, errors.New("the Node has no name")
	case err != nil || !section.Origin(at):
		return nil, errors.New("the URL is not of the form https://host")
	case in.Auth != "" && in.Auth != Basic && in.Auth != Session:
		return nil, fmt.Errorf("auth is %q, and must be %q or %q", in.Auth, Basic, Session)
	}
	b := &bmc{BMC: in, url: &url.URL{Scheme: at.Scheme, Host: at.Host}, turn: semaphore.NewWeighted(1)}
	if in.Auth == "" {
		b.Auth = Basic
	}
	if in.UUID != "" {
		if b.uuid, err = section.ParseUUID(in.UUID); err != nil {
			return nil, err
		}
		if why := b.uuid.Shared(); why != "" {
			return nil, fmt.Errorf("the UUID %s %s; name the machine's serialNumber instead", in.UUID, why)
		}
	}
	if b.trust, err = newTrust(in); err != nil {
		return nil, err
	}
	if _, err := b.credentials(); err != nil {
		return nil, err
	}
	return b, nil
}
