package receiver

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/remediations/intake"
)

// drydock_alerts_received_total{result} and drydock_posts_total{code}. All series exist from the
// start, so that rate() shows the first event.
type serverMetrics struct {
	alerts *prometheus.CounterVec
	posts  *prometheus.CounterVec
}

// Every status code of the receiver's answers.
func codes() []int {
	return []int{
		http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusInternalServerError, http.StatusServiceUnavailable,
	}
}

func newServerMetrics(registerer prometheus.Registerer) (serverMetrics, error) {
	m := serverMetrics{
		alerts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drydock_alerts_received_total",
			Help: "Alerts received by webhook, by result. An accepted alert is on its Node or queued for it. Alerts that Drydock could not write or queue are not counted: Drydock answers their post with 503, and Alertmanager sends it again.",
		}, []string{"result"}),
		posts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drydock_posts_total",
			Help: "Requests to the receiver, by the status code of the answer.",
		}, []string{"code"}),
	}
	for _, r := range intake.Results() {
		m.alerts.WithLabelValues(string(r))
	}
	for _, c := range codes() {
		m.posts.WithLabelValues(strconv.Itoa(c))
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.alerts, m.posts} {
		if err := registerer.Register(c); err != nil {
			return serverMetrics{}, fmt.Errorf("registering the receiver's metrics: %w", err)
		}
	}
	return m, nil
}
