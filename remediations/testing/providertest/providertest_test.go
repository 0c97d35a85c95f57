package providertest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/testing/providertest"
)

const token = "a-token-that-nobody-may-see"

// api is the backend of a stranger's provider.
type api struct {
	mu       sync.Mutex
	machines []machine
	// reset are the machines that were reset. attempts are the attempts that requested the resets.
	reset, attempts []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	id, isReset := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/machines/"), "/reset")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		w.WriteHeader(http.StatusUnauthorized)
	case isReset && slices.Contains(a.attempts, r.URL.Query().Get("attempt")):
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"message": "that was asked for already"}`))
	case isReset && !slices.ContainsFunc(a.machines, func(m machine) bool { return m.ID == id }):
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message": "there is no such machine"}`))
	case isReset:
		a.reset = append(a.reset, id)
		if attempt := r.URL.Query().Get("attempt"); attempt != "" {
			a.attempts = append(a.attempts, attempt)
		}
		_, _ = w.Write([]byte(`{}`))
	default:
		name := r.URL.Query().Get("name")
		_ = json.NewEncoder(w).Encode(slices.DeleteFunc(slices.Clone(a.machines), func(m machine) bool { return m.Name != name }))
	}
}

func (a *api) set(which providertest.Scene) engine.Machine {
	a.mu.Lock()
	defer a.mu.Unlock()
	neighbour := machine{"m-2", "node-2", "on"}
	a.machines = map[providertest.Scene][]machine{
		providertest.NoMachine:        {neighbour},
		providertest.TwoMachines:      {{"m-1", "node-1", "on"}, {"m-3", "node-1", "on"}, neighbour},
		providertest.AnotherOfItsName: {{"m-3", "node-1", "on"}, neighbour},
		providertest.ItsIDIsAnothers:  {{"m-1", "node-7", "on"}, neighbour},
	}[which]
	return engine.Machine{Node: "node-1", ProviderID: "strange://m-1", Attempt: "abcdef-0-1"}
}

// strange returns an outside author's provider that has these flaws.
func strange(flaws ...string) providertest.Provider {
	has := map[string]bool{}
	for _, f := range flaws {
		has[f] = true
	}
	return providertest.Provider{
		DoesNotApply: map[string]string{"replacement": "nothing is replaced"},
		Start: func(t testing.TB, timeout time.Duration) providertest.World {
			side := &api{machines: []machine{{"m-1", "node-1", "on"}, {"m-2", "node-2", "on"}}}
			wire := providertest.NewHTTP(t, providertest.HTTPOptions{
				Handler: side, Changes: func(r *http.Request) bool { return r.Method == http.MethodPost },
				Error: func(_ int, text string) (string, string) {
					body, _ := json.Marshal(map[string]string{"message": text})
					return "", string(body)
				},
			})
			again := func() engine.Actuator { return stranger{wire.URL(), token, timeout, has, map[string]bool{}} }
			return providertest.World{
				Actuator: again(), Again: again, Wire: wire, Close: wire.Close, Secrets: []string{token},
				Machine:   engine.Machine{Node: "node-1", ProviderID: "strange://m-1", Attempt: "abcdef-0-1"},
				Neighbour: engine.Machine{Node: "node-2", ProviderID: "strange://m-2", Attempt: "fedcba-0-1"}, ID: "m-1", NeighbourID: "m-2",
				Set: side.set,
				Refuses: map[string]func() engine.Machine{"it is off": func() engine.Machine {
					m := side.set("")
					side.mu.Lock()
					defer side.mu.Unlock()
					side.machines = []machine{{"m-1", "node-1", "off"}, {"m-2", "node-2", "on"}}
					return m
				}},
				Changed: func() []string {
					side.mu.Lock()
					defer side.mu.Unlock()
					return slices.Clone(side.reset)
				},
			}
		},
	}
}

// TestAStrangersProviderPasses: a provider of two hundred lines can pass the suite.
func TestAStrangersProviderPasses(t *testing.T) {
	providertest.Run(t, strange())
}

// TestEachFlawIsFound: if a provider lacks a guard, the case for that guard fails with a message
// about it.
func TestEachFlawIsFound(t *testing.T) {
	for flaw, by := range map[string]string{
		"does not compare the ID":                 "act: another machine has its name",
		"takes the first of two":                  "act: two machines could be meant",
		"never asks mayStill":                     "mayStill says no",
		"asks mayStill first":                     "mayStill is asked last",
		"asks mayStill where it was asked before": "a crash before the work",
		"does not name the attempt":               "the same attempt again after a crash",
		"looks at its context no more":            "a context that ends while mayStill is asked",
		"tries the change again":                  "the change: answer 500 after the work",
		"takes every error for a refusal":         "the change: cut after the work",
		"follows redirects":                       "the change: redirect 307",
		"believes a page":                         "the change: page 404 after the work",
		"believes half a document":                "the change: half a document after the work",
		"does not know what concerns its account": "the change: answer 401",
		"asks again when refused":                 "every look: answer 401",
		"does not say what passes":                "every look: cut",
		"asks mayStill before it gives up":        "every look: hang",
		"does not wait when it is told to":        "every look: answer 503",
		"reads without a bound":                   "the change: endless body after the work",
		"quotes without a bound":                  "the change: answer 400",
		"shows its token":                         "every look: page 502",
		"bars all machines after one refusal":     "wrong once: answer 401",
		"reads all again after the intent":        "slow: each answer",
		"does not say before what it refuses":     "survey: what act refuses",
		"a survey that changes something":         "survey",
		"a survey that says nothing":              "survey: no such machine",
		"no answer means that it is off":          "testimony: no such machine",
		"does not end with its context":           "a change whose context ends",
		"has no time limit":                       "a change without an answer ends by itself",
		"leaves a goroutine":                      "one machine, one change",
	} {
		t.Run(flaw, func(t *testing.T) {
			if testing.Short() && slices.Contains(seconds, flaw) {
				t.Skip("it takes seconds until this is certain")
			}
			restore := func() {}
			if slices.Contains(seconds, flaw) {
				restore = providertest.Soon(5 * time.Second) // short, because the suite waits for it
			}
			said := failure(t, by, strange(flaw))
			restore()
			require.NotEmpty(t, said, "the case passed")
			t.Log(said)
			require.Empty(t, failure(t, by, strange()), "the control")
		})
	}
}

// seconds are the flaws that are found only by waiting.
var seconds = []string{"has no time limit", "does not end with its context", "leaves a goroutine"}

// failure runs one case, and returns how it failed. It returns an empty text if the case passed.
func failure(t *testing.T, name string, p providertest.Provider) string {
	t.Helper()
	run := providertest.Case(name)
	require.NotNil(t, run, "there is no case %q", name)
	r := &recorder{TB: t}
	over := make(chan struct{})
	go func() {
		defer close(over)
		run(r, p)
	}()
	<-over
	return r.said
}

// recorder is a testing.TB that records its failure. It ends the case and not the test.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func (r *recorder) FailNow() { runtime.Goexit() }
