package alertmanager

import (
	"context"
	"fmt"
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

	"drydock.dev/drydock/internal/replicas"
	"drydock.dev/drydock/remediations/alerts"
)

// replica is one address to query.
type replica struct {
	at       *replicas.Replica
	client   *http.Client // the HTTP client of at
	base     *url.URL     // the endpoint's URL, with the host name
	url      string       // the URL in alerts.Replica and in the metric
	timeout  time.Duration
	readings atomic.Pointer[readings]
}

func newReplica(e *replicas.Endpoint, address string, timeout time.Duration) (*replica, error) {
	at, err := e.Replica(address)
	if err != nil {
		return nil, err
	}
	return &replica{at: at, client: at.Client, base: e.URL(), url: e.At(address), timeout: timeout}, nil
}

// ask returns within the timeout.
func (r *replica) ask(ctx context.Context, in interests) alerts.Replica {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var groups sync.WaitGroup
	var groupsErr error
	m := newMutes(in)
	if in.receiver != "" {
		groups.Go(func() {
			if err := r.getMutes(ctx, m); err != nil {
				groupsErr = fmt.Errorf("asking Alertmanager %s for the groups of the receiver %q: %w", r.url, in.receiver, r.at.Explain(ctx, err))
			}
		})
	}
	var known readings
	if last := r.readings.Load(); last != nil {
		known = *last
	}
	a := newAnswer(in, known)
	if err := r.getAlerts(ctx, a); err != nil {
		err = fmt.Errorf("asking Alertmanager %s: %w", r.url, r.at.Explain(ctx, err))
		cancel()
		groups.Wait()
		return alerts.Replica{URL: r.url, Err: err}
	}
	r.readings.Store(&a.readings)
	groups.Wait()
	if groupsErr != nil {
		// Without the groups it is unknown whether an alert is muted, so the whole answer is useless.
		return alerts.Replica{URL: r.url, Err: groupsErr}
	}
	if in.receiver != "" {
		a.mute(m.by)
	}
	out := a.replica()
	out.URL, out.Silences = r.url, r.getSilences(ctx, a.silenceIDs())
	if a.unrouted() {
		if all, err := r.getReceivers(ctx, in.receiver); err == nil {
			out.NoReceiver, out.Akin = !all.found, all.similar
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

func (r *replica) api(reader runtime.Consumer) *client.AlertmanagerAPI {
	transport := httptransport.New(r.base.Host, r.base.Path+client.DefaultBasePath, []string{r.base.Scheme})
	// Otherwise the environment variable DEBUG would print requests with their credentials.
	transport.Debug = false
	transport.Consumers = map[string]runtime.Consumer{runtime.JSONMime: reader}
	return client.New(transport, strfmt.Default)
}
