package probe

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type result string

const (
	answered        result = "answered"
	malformed       result = "malformed"
	unauthenticated result = "unauthenticated"
	stale           result = "stale"
	replayed        result = "replayed"
	limited         result = "limited"
)

// All series exist from the start, so that rate() sees the first event.
func newQuestions(r prometheus.Registerer) (*prometheus.CounterVec, error) {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drydock_mesh_questions_total",
		Help: "Messages that arrived at the agent's probe port, by result: stale means that the key is right and the clock is more than a minute off.",
	}, []string{"proto", "result"})
	for _, p := range Protos() {
		for _, res := range []result{answered, malformed, unauthenticated, stale, replayed, limited} {
			v.WithLabelValues(string(p), string(res))
		}
	}
	if r == nil {
		return v, nil
	}
	if err := r.Register(v); err != nil {
		return nil, fmt.Errorf("registering the probe port's metric: %w", err)
	}
	return v, nil
}
