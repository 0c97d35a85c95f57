package alertmanager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"

	"drydock.dev/drydock/internal/replicas"
	"drydock.dev/drydock/internal/text"
)

// Options name the Alertmanagers, and the alerts to look for. Only URLs is required.
type Options struct {
	// At least one `http` or `https` URL, with a path if Alertmanager has a route prefix. Every
	// address of a host name is a replica. Credentials in a URL are used as basic authentication.
	URLs []string
	// The authentication and the TLS settings. Files that it names are read again when they change.
	// Redirects are never followed, even if it allows them. With a proxy, host names are not
	// resolved, and each URL is one replica.
	HTTPConfig config.HTTPClientConfig
	// Bounds the queries of one replica, from the connection to the last byte of the last answer,
	// and separately the lookup of a name. The default is 3 s.
	Timeout time.Duration
	// Matchers in Alertmanager's syntax for the alert that always fires. If it is empty,
	// Replica.Watchdog is not set.
	Watchdog string
	// Each string is one set of matchers for alerts which show that Prometheus does not see the
	// nodes. The names of such alerts are in Replica.BlindBy.
	BlindWhen []string
	// Matchers for the alert that fires while a Prometheus has the data of all nodes. If it is
	// empty, the alert is not looked for.
	SourceSeen string
	// The receiver in Alertmanager's configuration that posts to Drydock. Each poll then also
	// requests its groups, and sets Alert.MutedBy. If it is empty, or Alertmanager has no such
	// receiver, no alert counts as muted.
	Receiver string
	// Selects the alerts of interest, to bound the size of a Replica. It is called concurrently,
	// and must neither store nor change the labels. If it is nil, all alerts are of interest.
	Keep func(labels map[string]string) bool
	// The labels that name an alert's node. The alerts in Replica.Inhibitors have these labels,
	// besides their names.
	NodeLabels []string
	// Selects the self-test's alerts, which always fire. They are in Replica.SelfTest and not in
	// Replica.Alerts, whatever Keep returns. It is called like Keep, and may be nil.
	SelfTest func(labels map[string]string) bool
	// Returns the addresses of a host name, without ports. It must return when its context ends.
	// Nil means net.DefaultResolver.
	Resolver func(ctx context.Context, host string) ([]string, error)
	// If it is nil, the metric drydock_alertmanager_up is not registered.
	Registerer prometheus.Registerer
}

// Client polls all replicas. It is safe for concurrent use.
type Client struct {
	endpoints []*replicas.Endpoint
	timeout   time.Duration
	interests interests
	up        *upMetric
	// Tests change it.
	answerBytes int64
	rounds      rounds
	known       knownReplicas
}

// New makes a Client. It sends no request yet. An error names the wrong option and has no
// credentials.
func New(o Options) (*Client, error) {
	interests, err := newInterests(o)
	if err != nil {
		return nil, err
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("the timeout of a replica is %s; it must be positive", text.Duration(o.Timeout))
	}
	c := &Client{
		timeout:     cmp.Or(o.Timeout, defaultTimeout),
		interests:   interests,
		up:          newUpMetric(),
		answerBytes: maxAnswerBytes,
	}
	c.endpoints, err = replicas.New(replicas.Options{
		Of: "Alertmanager", URLs: o.URLs, HTTP: o.HTTPConfig, Most: maxReplicas, Timeout: c.timeout, Idle: idleConnections, Lookup: o.Resolver, Judge: c.judge,
	})
	if err != nil {
		return nil, err
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(c.up.gauge); err != nil {
			return nil, fmt.Errorf("registering the metric drydock_alertmanager_up: %w", err)
		}
	}
	return c, nil
}

// Close closes idle connections. Running polls end normally.
func (c *Client) Close() { c.known.keepOnly(nil) }
