package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-openapi/runtime"
	httptransport "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/common/config"
)

// replica is one address to ask, with the connections to it.
type replica struct {
	endpoint *endpoint
	url      string // as the Snapshot and the metric name it
	timeout  time.Duration
	client   *http.Client
}

// newReplica prepares to ask the endpoint at address. The request's URL keeps
// the host name, so the Host header and the name that TLS checks stay right;
// only the dialling differs. Behind a proxy nothing differs.
func newReplica(e *endpoint, address string, timeout time.Duration, answerBytes int64) (*replica, error) {
	dialer := &net.Dialer{
		// net/http dials on after the request's context has ended, so without its
		// own limit each poll would leave one more dial to a black hole behind.
		Timeout: timeout,
	}
	origin, target := e.origin(), net.JoinHostPort(address, e.port)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == origin && !e.asGiven {
			addr = target
		}
		return dialer.DialContext(ctx, network, addr)
	}
	rt, err := config.NewRoundTripperFromConfig(e.http, "alertmanager",
		config.WithDialContextFunc(dial),
		config.WithIdleConnTimeout(idleConnections),
		config.WithUserAgent("drydock"),
	)
	if err != nil {
		return nil, err
	}
	return &replica{
		endpoint: e,
		url:      e.withHost(address),
		timeout:  timeout,
		client: &http.Client{
			Transport: guard{next: rt, limit: answerBytes},
			// The guard refuses redirects already; this is for whoever changes it.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// ask is one request. It returns within the timeout.
func (r *replica) ask(ctx context.Context, in interests) Replica {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	a := newAnswer(in)
	if err := r.getAlerts(ctx, a); err != nil {
		return Replica{URL: r.url, Err: fmt.Errorf("asking Alertmanager %s: %w", r.url, r.explain(ctx, err))}
	}
	return Replica{URL: r.url, Watchdog: a.watchdog, WatchdogAt: a.watchdogAt, BlindBy: a.names(), Alerts: a.alerts}
}

func (r *replica) getAlerts(ctx context.Context, a *answer) error {
	e := r.endpoint
	transport := httptransport.New(e.origin(), e.path+client.DefaultBasePath, []string{e.scheme})
	// The environment variable DEBUG would print requests, credentials and all.
	transport.Debug = false
	transport.Consumers = map[string]runtime.Consumer{runtime.JSONMime: a}
	yes := true
	_, err := client.New(transport, strfmt.Default).Alert.GetAlerts(
		alert.NewGetAlertsParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client).
			WithActive(&yes).WithSilenced(&yes).WithInhibited(&yes).WithUnprocessed(&yes))
	if err != nil {
		return err
	}
	if !a.complete {
		return errors.New("the answer was not read to its end")
	}
	return nil
}

// explain drops the request's own URL from an error, because the sentence has
// named the replica, and says a timeout in words.
func (r *replica) explain(ctx context.Context, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// What net/http says instead is at times only that a connection is closed.
		return fmt.Errorf("no whole answer within %s: %w", r.timeout, context.DeadlineExceeded)
	}
	return err
}

func (r *replica) close() { r.client.CloseIdleConnections() }

// CloseIdleConnections lets http.Client reach the connections below the guard.
func (g guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
