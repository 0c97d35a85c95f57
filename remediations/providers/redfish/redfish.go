// Package redfish reboots machines through their BMCs, and reports whether they are powered.
//
// It uses gofish. This list has the weaknesses of its v0.24.0, and how this package avoids them:
//
//   - gofish has no time limits and follows redirects. It appends a link from a BMC to the BMC's
//     address, so that "@elsewhere/…" is another host. Here all requests go through the transport
//     wire. It sends only to the configured host, and follows no redirect. It limits the time of
//     each request, the size of each answer, and the number of requests.
//   - Its Reset repeats the POST after HTTP 412. If the target is a complete URL, Reset appends it
//     to the BMC's address. It treats every 2xx as a success. This package posts the reset itself,
//     once, to a checked target.
//   - Its list of Systems fails if one System cannot be read. This package reads them one by one.
//   - It accepts a session without a token. This package treats that as an error.
//   - If the call's context has ended, its Logout runs without a context. Here Logout has a context
//     with a short time limit.
//
// Only the configuration says which BMC a machine has. Before each reset, the System must prove
// that it is the node's machine: by its UUID, or by the configured serial number. The reset request
// names no machine, so only this check prevents a reset of another machine.
//
// BMCs lock an account after a few wrong passwords, and many BMCs often share one account. But some
// BMCs occasionally answer 401 to good credentials. So Drydock stops using credentials at a BMC
// that has answered 401 twice, and at all BMCs after two BMCs have answered 401. It uses them again
// when their files change, or after half an hour. A 403 concerns only the BMC that answered it.
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
	// BMCs usually lock an account for a shorter time.
	defaultTryAgain = 30 * time.Minute
	// The caller waits for the end of a session.
	logoutWithin = 2 * time.Second
)

// BMC and Auth are types of the configuration section providers.redfish.
type (
	BMC  = settings.BMC
	Auth = settings.Auth
)

const (
	Basic   = settings.Basic
	Session = settings.Session
)

// Options configure a Client: the section providers.redfish, and what only the program can set.
type Options struct {
	settings.Redfish
	// TryAgain is how long refused credentials are not used. The default is 30 min.
	TryAgain time.Duration
	// Nodes returns all Nodes of the cluster, because a systemUUID that two Nodes have does not
	// identify a machine. If Nodes is nil, the UUIDs are not compared.
	Nodes func(ctx context.Context) ([]*corev1.Node, error)
}

// Client calls BMCs. Each BMC has one call at a time. Client is safe for concurrent use.
type Client struct {
	o      Options
	logout time.Duration   // time limit for the end of a session
	bmcs   map[string]*bmc // by the Node's name

	mu      sync.Mutex
	refused map[[sha256.Size]byte]map[string]refusals // by the hash of the credentials, then by the BMC's host
	barred  map[string]bar                            // by the BMC's host
	shown   map[string]showing                        // by the BMC's host
}

type bmc struct {
	BMC
	url *url.URL
	trust
	uuid section.UUID        // from the configuration; if it is zero, the Node's UUID is used
	turn *semaphore.Weighted // the holder may call the BMC

	learning sync.Mutex
	learned  way
}

// New checks that all files can be read. It sends no request.
func New(o Options) (*Client, error) {
	if o.TryAgain == 0 {
		o.TryAgain = defaultTryAgain
	}
	c := &Client{o: o, logout: min(logoutWithin, o.Timeout), bmcs: map[string]*bmc{}, refused: map[[sha256.Size]byte]map[string]refusals{}, barred: map[string]bar{}, shown: map[string]showing{}}
	for _, in := range o.BMCs {
		b, err := newBMC(in)
		if err != nil {
			return nil, fmt.Errorf("configuring Redfish: the BMC of node %q: %w", in.Node, err)
		}
		c.bmcs[in.Node] = b
	}
	return c, nil
}

func newBMC(in BMC) (*bmc, error) {
	at, err := url.Parse(in.URL)
	if err != nil {
		return nil, errors.New("the URL must have the form https://host")
	}
	b := &bmc{BMC: in, url: &url.URL{Scheme: at.Scheme, Host: at.Host}, turn: semaphore.NewWeighted(1)}
	if in.UUID != "" {
		if b.uuid, err = section.ParseUUID(in.UUID); err != nil {
			return nil, err
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
