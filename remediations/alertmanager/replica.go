package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-openapi/runtime"
	httptransport "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/common/config"

	"drydock.dev/drydock/internal/promhttp"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/remediations/alerts"
)

// replica is one address to ask, with the connections to it.
type replica struct {
	endpoint *endpoint
	url      string // as alerts.Replica and the metric name it
	timeout  time.Duration
	client   *http.Client
	// secrets are what proves who Drydock is. No text shows them.
	secrets *redact.Keyring
	// readings are the alerts of its last answer.
	readings atomic.Pointer[readings]
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
	rt, err := promhttp.New(e.http, "alertmanager", timeout, dial, config.WithIdleConnTimeout(idleConnections))
	if err != nil {
		return nil, err
	}
	secrets := &redact.Keyring{Mark: "[secret]"}
	return &replica{
		secrets:  secrets,
		endpoint: e,
		url:      e.withHost(address),
		timeout:  timeout,
		client: &http.Client{
			Transport: guard{next: rt, limit: answerBytes, secrets: secrets},
			// The guard refuses redirects already; this is for whoever changes it.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// ask is one replica's part of a poll. It returns within the timeout.
func (r *replica) ask(ctx context.Context, in interests) alerts.Replica {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var groups sync.WaitGroup
	var groupsErr error
	m := newMutes(in)
	if in.receiver != "" {
		groups.Go(func() {
			if err := r.getMutes(ctx, m); err != nil {
				groupsErr = fmt.Errorf("asking Alertmanager %s for the groups of the receiver %q: %w", r.url, in.receiver, r.explain(ctx, err))
			}
		})
	}
	var known readings
	if last := r.readings.Load(); last != nil {
		known = *last
	}
	a := newAnswer(in, known)
	if err := r.getAlerts(ctx, a); err != nil {
		err = fmt.Errorf("asking Alertmanager %s: %w", r.url, r.explain(ctx, err))
		cancel()
		groups.Wait()
		return alerts.Replica{URL: r.url, Err: err}
	}
	r.readings.Store(&a.readings)
	groups.Wait()
	if groupsErr != nil {
		// Whether an alert is muted is not known then, so nothing is.
		return alerts.Replica{URL: r.url, Err: groupsErr}
	}
	if in.receiver != "" {
		a.mute(m.by)
	}
	out := a.replica()
	out.URL, out.Silences = r.url, r.getSilences(ctx, a.silenceIDs())
	if a.unrouted() {
		if all, err := r.getReceivers(ctx, in.receiver); err == nil {
			out.NoReceiver, out.Akin = !all.found, all.akin
		}
	}
	return out
}

func (r *replica) getAlerts(ctx context.Context, a *answer) error {
	list := &stream{of: "alerts", element: a.read}
	yes := true
	_, err := r.api(list).Alert.GetAlerts(
		alert.NewGetAlertsParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client).
			WithActive(&yes).WithSilenced(&yes).WithInhibited(&yes).WithUnprocessed(&yes))
	return list.ended(err)
}

// api is the generated client, with a reader of our own for the answer.
func (r *replica) api(reader runtime.Consumer) *client.AlertmanagerAPI {
	e := r.endpoint
	transport := httptransport.New(e.origin(), e.path+client.DefaultBasePath, []string{e.scheme})
	// The environment variable DEBUG would print requests, credentials and all.
	transport.Debug = false
	transport.Consumers = map[string]runtime.Consumer{runtime.JSONMime: reader}
	return client.New(transport, strfmt.Default)
}

// explain drops the request's own URL from an error, because the sentence has
// named the replica, and says a timeout in words. What the replica wrote stands
// in it in bounds, and without what proves who Drydock is.
func (r *replica) explain(ctx context.Context, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// What net/http says instead is at times only that a connection is closed.
		return fmt.Errorf("no whole answer within %s: %w", r.timeout, context.DeadlineExceeded)
	}
	if refused := redact.TokenRefused(err); refused != nil {
		return refused
	}
	return r.secrets.Error(err)
}

func (r *replica) close() { r.client.CloseIdleConnections() }

// CloseIdleConnections lets http.Client reach the connections below the guard.
func (g guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
