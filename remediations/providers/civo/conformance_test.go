package civo

import (
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/testing/providertest"
)

// TestConformance tests each of Civo's remediations against the contract of all providers.
func TestConformance(t *testing.T) {
	for name, of := range map[string]struct {
		actuator func(*Client) engine.Actuator
		soft     bool
		not      map[string]string
	}{
		"reboot": {actuator: func(c *Client) engine.Actuator { return Rebooter{c} }},
		"soft":   {actuator: func(c *Client) engine.Actuator { return Rebooter{c} }, soft: true},
		"replace": {
			actuator: func(c *Client) engine.Actuator { return Replacer{c} },
			not: map[string]string{
				"testimony":                    "who replaces machines is not asked whether they run",
				"exchanged at the last moment": "Civo takes a hostname to recycle and no condition with it; the look right before the call is all there is",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			not := map[string]string{"replacement": "nothing is replaced", "the same attempt again after a crash": "a reboot names no attempt: the record alone keeps a second one from leaving"}
			if of.not != nil {
				not = of.not
			}
			providertest.Run(t, providertest.Provider{
				Outlives: true, DoesNotApply: not,
				Start: func(t testing.TB, timeout time.Duration) providertest.World {
					w := startWorld(t, timeout, of.actuator)
					w.Machine.Soft = of.soft
					w.Neighbour.Soft = of.soft
					return w
				},
			})
		})
	}
}

// startWorld is Civo with two machines, behind a wire that misbehaves.
func startWorld(t testing.TB, timeout time.Duration, actuator func(*Client) engine.Actuator) providertest.World {
	sim := provider(t)
	target, err := url.Parse(sim.URL())
	require.NoError(t, err)
	wire := providertest.NewHTTP(t, providertest.HTTPOptions{
		Handler: &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: &http.Transport{DisableKeepAlives: true},
		},
		Changes: func(r *http.Request) bool { return r.Method != http.MethodGet },
		Error: func(status int, text string) (string, string) {
			body, _ := json.Marshal(map[string]any{"result": "failed", "code": "new_code", "reason": text, "details": text})
			return "", string(body)
		},
	})
	again := func() engine.Actuator { return actuator(client(t, wire.URL(), timeoutOf(timeout))) }
	civo := &civoWorld{t: t, sim: sim}
	return providertest.World{
		Actuator: again(), Again: again, Wire: wire, Secrets: []string{apiKey},
		Machine:   engine.Machine{Node: "node-1", ProviderID: "civo://i-1", Attempt: "abcdef-0-1"},
		Neighbour: engine.Machine{Node: "node-10", ProviderID: "civo://i-10", Attempt: "fedcba-0-1"},
		ID:        "i-1", NeighbourID: "i-10",
		Changed: civo.changed, Set: civo.set, Stage: civo.stage,
		Close: func() { wire.Close(); sim.Close() },
	}
}

func timeoutOf(d time.Duration) func(*Options) {
	return func(o *Options) { o.Timeout, o.IssueWithin = d, 2*time.Minute }
}

// civoWorld is the simulated Civo with the operations that providertest needs.
type civoWorld struct {
	t   testing.TB
	sim *civosim.Server
}

// changed returns the instances that the simulator acted on, from its record: "hard reboot i-1",
// "recycle i-1 as …".
func (w *civoWorld) changed() (ids []string) {
	for _, call := range w.sim.Done(civosim.Any) {
		_, rest, _ := strings.Cut(call.Done, "i-")
		id, _, _ := strings.Cut(rest, " ")
		ids = append(ids, "i-"+id)
	}
	return ids
}

// list makes Civo list exactly these instances, and show them by their IDs.
func (w *civoWorld) list(all ...map[string]any) {
	w.sim.Heal()
	w.sim.Inject(civosim.ListInstances, civosim.Answer(200, all))
	w.sim.Inject(civosim.GetInstance, civosim.Answer(404, map[string]any{"code": "database_instance_find", "reason": "x"}))
}

func instanceOf(id, hostname, status string, created time.Time) map[string]any {
	return map[string]any{"id": id, "hostname": hostname, "status": status, "created_at": created.UTC().Format(time.RFC3339Nano)}
}

func (w *civoWorld) set(which providertest.Scene) engine.Machine {
	m, now := machine1, time.Now()
	neighbour := instanceOf("i-10", "node-10", active, now)
	switch which {
	case providertest.NoMachine:
		w.list(neighbour)
	case providertest.TwoMachines:
		w.list(instanceOf("i-1", "node-1", active, now), instanceOf("i-2", "node-1", active, now), neighbour)
		m.ProviderID = "" // the ID would distinguish them
	case providertest.AnotherOfItsName:
		w.list(instanceOf("i-2", "node-1", active, now), neighbour)
	case providertest.ItsIDIsAnothers:
		w.list(instanceOf("i-1", "node-7", active, now), neighbour)
	}
	return m
}

func (w *civoWorld) stage(which providertest.Stage) []string {
	before, after := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	old, neighbour := instanceOf("i-1", "node-1", deleting, before), instanceOf("i-10", "node-10", active, before)
	fresh := instanceOf("i-3", "node-3", active, after)
	pool := func(members ...map[string]any) {
		w.sim.Inject(civosim.ListPools, civosim.Answer(200, []any{map[string]any{"id": "pool-1", "count": 2, "instances": members}}))
	}
	switch which {
	case providertest.Wanted: // the provider promises another machine
	case providertest.OldLingers:
		w.list(old, neighbour)
		pool(old, neighbour)
	case providertest.NewFirst:
		w.list(old, neighbour, fresh)
		pool(neighbour, fresh)
	case providertest.Holes:
		w.list(fresh)
		pool(neighbour, fresh)
	case providertest.Nothing:
		w.list()
		pool()
	case providertest.OldGone:
		w.list(neighbour)
		pool(neighbour)
	case providertest.NameAgain:
		fresh["hostname"] = "node-1"
		w.list(neighbour, fresh)
		pool(neighbour, fresh)
	case providertest.Whole:
		w.list(neighbour, fresh)
		pool(neighbour, fresh)
	}
	return []string{"civo://i-3"}
}
