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
	// URLs are the URLs of the Alertmanagers, at least one. Each is `http` or `https`, with a path if
	// Alertmanager has a route prefix. Every address of a host name is a replica. Credentials in a URL
	// are used as basic authentication.
	URLs []string
	// HTTPConfig has the authentication and the TLS settings. If a file that it names changes, the
	// HTTP library reads that file again. Redirects are never followed, even if HTTPConfig allows
	// them. With a proxy, Drydock does not resolve the host names, and each URL is one replica.
	HTTPConfig config.HTTPClientConfig
	// Timeout bounds the queries of one replica, from the connection to the last byte of the last
	// answer. It also bounds, separately, the lookup of a name. The default is 3 s.
	Timeout time.Duration
	// Watchdog has matchers in Alertmanager's syntax, for the alert that always fires. If it is empty,
	// Replica.Watchdog is not set.
	Watchdog string
	// BlindWhen selects alerts which show that Prometheus does not see the nodes. Each string is one
	// set of matchers. If an active alert matches all of one set, its name is in Replica.BlindBy.
	BlindWhen []string
	// SourceSeen has matchers for the alert that fires while a Prometheus has the data of all nodes.
	// If it is empty, the alert is not looked for.
	SourceSeen string
	// Receiver is the name of the receiver in Alertmanager's configuration that posts to Drydock.
	// If it is set, each poll also requests this receiver's groups, and sets Alert.MutedBy. If it
	// is empty, mute times are not requested. If Alertmanager has no receiver with this name, no
	// alert counts as muted.
	Receiver string
	// Keep selects the alerts of interest, to bound the size of a Replica. It is called at the same
	// time for several replicas and answers, and must neither store nor change the labels. If it is
	// nil, all alerts are of interest.
	Keep func(labels map[string]string) bool
	// NodeLabels are the labels that name an alert's node. The alerts in Replica.Inhibitors have these
	// labels. If NodeLabels is empty, these alerts have only their names.
	NodeLabels []string
	// SelfTest selects the self-test's alerts, which always fire. These alerts are in
	// Replica.SelfTest and not in Replica.Alerts, whatever Keep returns. The rules for calls of
	// Keep also apply to SelfTest. It may be nil.
	SelfTest func(labels map[string]string) bool
	// Resolver returns the addresses of a host name, without ports. It must return when its context
	// ends. If it is nil, net.DefaultResolver is used.
	Resolver func(ctx context.Context, host string) ([]string, error)
	// Registerer registers the metric drydock_alertmanager_up. If it is nil, the metric is not
	// registered.
	Registerer prometheus.Registerer
}

// Client polls all replicas. New makes it. It is safe for concurrent use.
type Client struct {
	endpoints []*replicas.Endpoint
	timeout   time.Duration
	interests interests
	up        *upMetric
	// answerBytes is maxAnswerBytes; tests change it.
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
