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

// Options name the Alertmanagers, and the alerts to look for. The zero value of every field but
// URLs is usable.
type Options struct {
	// URLs of the Alertmanagers, each `http` or `https`, with a path where
	// Alertmanager has a route prefix. Every address of a host name is a replica.
	// Credentials in a URL are used as basic authentication. At least one.
	URLs []string
	// HTTPConfig is how to authenticate and which TLS to use. Files that it names
	// are read again by its own library when they change. Redirects are never
	// followed, whatever it says. With a proxy, the names are not resolved here
	// and each URL is one replica.
	HTTPConfig config.HTTPClientConfig
	// Timeout bounds one replica's reply, from dialling to the last byte of the
	// last answer that it takes, and separately the lookup of a name. Default 3 s.
	Timeout time.Duration
	// Watchdog are matchers in Alertmanager's syntax, and the alert that always fires matches all
	// of them. Empty: Replica.Watchdog is not filled.
	Watchdog string
	// BlindWhen are matchers, one set a string: an active alert that matches all
	// of one set is named in Replica.BlindBy.
	BlindWhen []string
	// SourceSeen are matchers of the alert that fires while a Prometheus sees the source of all
	// alerts. That alert matches all of them. Empty: the alert is not looked for.
	SourceSeen string
	// Receiver is the name of the receiver that posts to Drydock, in Alertmanager's configuration.
	// With it, each poll requests that receiver's groups too, and fills Alert.MutedBy. Empty: mute
	// times are not requested. A name that Alertmanager does not have mutes nothing.
	Receiver string
	// Keep selects the alerts of interest, to bound what a Replica holds. It is called at the same
	// time for several replicas and answers, and must neither keep nor change the labels. Nil keeps
	// all.
	Keep func(labels map[string]string) bool
	// NodeLabels are the labels that name an alert's node. Replica.Inhibitors has them. Empty: it
	// has names alone.
	NodeLabels []string
	// SelfTest selects the alerts that are always on their way to Drydock: they are in
	// Replica.SelfTest, and not in Alerts, whatever Keep returns. It is called like Keep. Nil:
	// none.
	SelfTest func(labels map[string]string) bool
	// Resolver returns the addresses of a host name, without ports. It must return when its context
	// ends. Nil means net.DefaultResolver. Tests use it to give names addresses.
	Resolver func(ctx context.Context, host string) ([]string, error)
	// Registerer takes the metric drydock_alertmanager_up. Nil: not registered.
	Registerer prometheus.Registerer
}

// Client polls all replicas. It is made by New, and its methods may be called at the same time.
type Client struct {
	endpoints []*replicas.Endpoint
	timeout   time.Duration
	interests interests
	up        *upMetric
	// answerBytes is maxAnswerBytes, but for tests.
	answerBytes int64
	rounds      rounds
	known       knownReplicas
}

// New makes a Client. It makes no request yet. An error is a fault of the options: it names the
// wrong option and is safe to show.
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
