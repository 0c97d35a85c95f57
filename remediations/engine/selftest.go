package engine

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

// connection is what the engine remembers about the self-test: an alert that always fires, and
// shows whether alerts reach Drydock. No decision about a node depends on it.
type connection struct {
	memory selftest.Memory
	is     selftest.Result
	// This field is the last state that was bad or OK. The state unknown does not change it, so
	// that an Event about a bad state is always followed by one about its end.
	told selftest.State
	// arrival is when the self-test's alert last arrived. unread is the ledger's text for it, if
	// that is not a valid time.
	arrival time.Time
	unread  string
}

func (e *Engine) arrived(data map[string]string, l *ledger.Ledger) {
	c := &e.connection
	c.arrival = l.Arrival
	if c.memory.At.IsZero() { // this leader has no result yet, so it continues with the earlier leader's
		c.is, c.told = l.Status.SelfTest, l.Status.SelfTest.State
	}
	_, err := ledger.DecodeArrival(data)
	if err != nil && data[ledger.KeyArrival] != c.unread {
		e.Log.Error(err, "the ledger's time of the self-test alert's last arrival is not valid")
	}
	c.unread = ""
	if err != nil {
		c.unread = data[ledger.KeyArrival]
	}
}

func (p *pass) selfTest() selftest.Result {
	c := &p.connection
	if p.word == nil || !p.word.AskedAt.After(c.memory.At) {
		return c.is
	}
	var posts selftest.Posts
	if p.Posts != nil {
		posts = p.Posts()
	}
	was := c.is
	c.memory, c.is = c.memory.Judge(p.Config, p.word, c.arrival, posts, was)
	c.memory.At = p.word.AskedAt
	p.metrics.setSelfTest(c.is.State, remediations.Later(c.arrival, posts.Arrived))
	if c.is.State == was.State {
		return c.is
	}
	p.Log.Info("the state of the self-test changed", "state", c.is.State, "before", was.State, "why", c.is.Message)
	switch {
	case c.is.State.Bad() && c.is.State != c.told:
		p.Events.Event("", Event{Warning: true, Reason: "NotConnected", Action: string(c.is.State), Note: c.is.Message})
	case c.is.State == selftest.OK && c.told.Bad():
		p.Events.Event("", Event{Reason: "Connected", Action: string(c.is.State), Note: c.is.Message})
	}
	if c.is.State.Bad() || c.is.State == selftest.OK {
		c.told = c.is.State
	}
	return c.is
}

// awaitsArrival reports whether another replica may have written a later arrival into the ledger.
func (e *Engine) awaitsArrival() bool {
	at := e.connection.arrival
	if e.Posts != nil {
		at = remediations.Later(at, e.Posts().Arrived)
	}
	return selftest.AwaitsArrival(e.connection.is, at, e.Clock.Now())
}

// saveOverArrival saves again after a conflict, if only the arrival time of the self-test's alert
// differs. Any replica may write that time at any moment, and no decision depends on it.
func (e *Engine) saveOverArrival(ctx context.Context, l *ledger.Ledger, conflict error) (string, error) {
	data, version, err := e.Store.Load(ctx)
	if err != nil || e.stored == nil || !maps.Equal(withoutArrival(data), withoutArrival(e.stored)) {
		return "", conflict
	}
	if at, err := ledger.DecodeArrival(data); err == nil {
		l.Arrival = at
	}
	return e.Store.Save(ctx, l.Encode(), version)
}

func withoutArrival(data map[string]string) map[string]string {
	data = maps.Clone(data)
	delete(data, ledger.KeyArrival)
	return data
}

func (e *Engine) trySave(ctx context.Context, l *ledger.Ledger, version string) (string, error) {
	if e.lacksCharge() != "" {
		return "", ErrNotInCharge
	}
	data, forgotten := l.Fit()
	if forgotten > 0 {
		e.Log.Info("the ledger is too large for a ConfigMap; its oldest cures and ends are dropped", "cures", forgotten)
	}
	v, err := e.Store.Save(ctx, data, version)
	if errors.Is(err, ErrConflict) {
		return e.saveOverArrival(ctx, l, err)
	}
	return v, err
}

type selfTestMetrics struct{ state, arrival *prometheus.GaugeVec }

func newSelfTestMetrics() selfTestMetrics {
	return selfTestMetrics{
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_selftest_state", Help: "1 for the state of the self-test: how far the alert that always fires gets on its way to Drydock.",
		}, []string{"state"}),
		arrival: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_selftest_last_arrival_timestamp_seconds", Help: "When the alert that always fires last arrived at any replica. There is no series before its first arrival.",
		}, nil),
	}
}

func (m *metrics) setSelfTest(state selftest.State, arrival time.Time) {
	if state == "" {
		state = selftest.Unknown
	}
	for _, s := range selftest.States {
		m.selfTest.state.WithLabelValues(string(s)).Set(gauge(s == state))
	}
	if !arrival.IsZero() {
		m.selfTest.arrival.WithLabelValues().Set(float64(arrival.Unix()))
	}
}
