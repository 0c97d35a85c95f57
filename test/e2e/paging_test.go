package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/deploy"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// figures serves the metrics of the Drydock that runs now. The lab's Prometheus scrapes it, because
// Prometheus is configured before any Drydock starts.
type figures struct{ url atomic.Pointer[string] }

var controller = &figures{}

func (f *figures) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	url := f.url.Load()
	if url == nil {
		return
	}
	req, err := http.NewRequestWithContext(in.Context(), http.MethodGet, *url, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(w, res.Body) // a scrape that is cut off fails
}

// person records what an Alertmanager has sent to a person.
type person struct {
	*httptest.Server
	mu    sync.Mutex
	posts []post
}

func newPerson(t *testing.T) *person {
	p := &person{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		var said post
		if err := json.NewDecoder(in.Body).Decode(&said); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.posts = append(p.posts, said)
	}))
	t.Cleanup(p.Close)
	return p
}

// firing counts, for each Alertmanager, the posts with a firing alert.
func (p *person) firing(alert string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := map[string]int{}
	for _, said := range p.posts {
		if said.Status == "firing" && said.Alerts[0].Labels["alertname"] == alert {
			by[said.ExternalURL]++
		}
	}
	return by
}

// all returns the names of the alerts that the person received.
func (p *person) all() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := map[string]bool{}
	for _, said := range p.posts {
		for _, a := range said.Alerts {
			names[a.Labels["alertname"]] = true
		}
	}
	return names
}

// TestPeopleArePagedOnlyWhenDrydockGivesUp uses the routes of deploy/alertmanager.yaml, with the
// route for handled alerts. A repair that cures does not page. A repair that gives up pages once
// from each of the two Alertmanagers. The chat receives both nodes.
func TestPeopleArePagedOnlyWhenDrydockGivesUp(t *testing.T) {
	y := newYard(t)
	const cured, lost = "node-60", "node-61"
	y.machines(lab.CivoOptions{Cures: func(in civosim.Instance, _ civosim.Op) bool { return in.Hostname == cured }})
	require.NoError(t, y.lab.LoadRuleFile(t.Context(), "../../rules/DrydockRepairExhausted.yaml", lab.RuleTimes{}))
	once := policy(map[string]any{"plan": []any{map[string]any{"step": "reboot", "wait": "2s", "attempts": 1}}})
	d := y.run(lab.DrydockOptions{Config: several(map[string]any{"policies": []any{for1(cured, policy(nil)), once}})})
	controller.url.Store(&d.MetricsURL)
	t.Cleanup(func() { controller.url.Store(nil) })

	text := regexp.MustCompile(`(?m)^( +)# (- receiver: repairs-chat|  matchers: .*|  group_by: .*)$`).ReplaceAll(deploy.Alertmanager(), []byte("$1$2"))
	var routes map[string]any
	require.NoError(t, yaml.Unmarshal(text, &routes))
	routes["route"].(map[string]any)["group_wait"] = "1s"
	pager, chat := newPerson(t), newPerson(t)
	for _, r := range routes["receivers"].([]any) {
		switch r := r.(map[string]any); r["name"] {
		case "drydock":
			r["webhook_configs"] = []any{map[string]any{"url": d.ReceiverURL, "http_config": map[string]any{"authorization": map[string]any{"credentials_file": y.token}}}}
		case "pager":
			r["webhook_configs"] = []any{map[string]any{"url": pager.URL}}
		case "repairs-chat":
			r["webhook_configs"] = []any{map[string]any{"url": chat.URL}}
		}
	}
	// The lab's Watchdog always fires, and must not page.
	route := routes["route"].(map[string]any)
	watchdog := map[string]any{"receiver": "nobody", "matchers": []any{`alertname="Watchdog"`}}
	route["routes"] = append([]any{watchdog}, route["routes"].([]any)...)
	routes["receivers"] = append(routes["receivers"].([]any), map[string]any{"name": "nobody"})
	y.configure(d, routes)

	y.fail(cured)
	y.recovers(cured, 1)
	require.NotEmpty(t, chat.firing("NodeNotReady"), "the control: the alert was posted")
	require.Empty(t, pager.all(), "a repair that cures wakes nobody")

	y.fail(lost)
	require.Equal(t, remediations.OutcomeExhausted, y.ended(lost).Outcome)
	require.Eventually(t, func() bool { return len(pager.firing("DrydockRepairExhausted")) == 2 }, lab.Patience, 100*time.Millisecond)
	for url, times := range pager.firing("DrydockRepairExhausted") {
		require.Equal(t, 1, times, url)
	}
	require.Equal(t, map[string]bool{"DrydockRepairExhausted": true}, pager.all())
}
