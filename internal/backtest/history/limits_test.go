package history_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// busyDay is a day of 24 Nodes. Some of them fail, come and go.
func busyDay(t testing.TB) *Recording {
	r := New(t)
	Every(0, 240, func(when time.Time, minutes float64) {
		if minutes >= 150 && minutes < 165 {
			r.Scrape(when, "a", nil)
			return
		}
		var machines []Machine
		for i := range 24 {
			m := Machine{Name: fmt.Sprintf("node-%c%02d", 'a'+i, i)}
			switch {
			case int(minutes)%(40+i) > 35:
				m.Ready = []string{"unknown", "false"}[i%2]
			case i%5 == 1:
				m.Cordoned = int(minutes)%100 > 80
			case i%7 == 2 && int(minutes)%90 > 45:
				continue
			}
			machines = append(machines, m)
		}
		r.Scrape(when, "a", KubeStateMetrics("a", machines...))
	})
	return r
}

// ranged is for how long a query asks.
func ranged(r *http.Request) time.Duration {
	var from, until float64
	_, _ = fmt.Sscan(r.FormValue("start"), &from)
	_, _ = fmt.Sscan(r.FormValue("end"), &until)
	return time.Duration((until - from) * float64(time.Second))
}

// later is what another server answers to the request.
func later(t *testing.T, url string, r *http.Request) []byte {
	t.Helper()
	_ = r.FormValue("query")                                            // reads the form
	answer, err := http.PostForm(url+"/api/v1/query_range", r.PostForm) //nolint:gosec // a server of this test
	if err != nil {
		t.Error(err)
		return nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return body
}

// TestEachLimitIsMetBySmallerQuestions: what comes of them is what a server without limits answers.
func TestEachLimitIsMetBySmallerQuestions(t *testing.T) {
	t.Parallel()
	r := busyDay(t)
	within := func(t *testing.T, l Limits) (*history.Past, *[]time.Duration) {
		past := open(t, r.ServeWithin(l), history.Options{Rules: rulesOf(t, unready)})
		var mu sync.Mutex
		var waited []time.Duration
		past.Patient(func(_ context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			waited = append(waited, d)
			return nil
		})
		return past, &waited
	}
	free, _ := within(t, Limits{})
	all := moments(t, free, 30, 230)
	require.Greater(t, len(all), 100)
	want := text(t, all)
	unlimited := r.Serve()
	for name, c := range map[string]struct {
		limits func(t *testing.T, met *atomic.Int64) Limits
		waits  time.Duration
	}{
		"points of a series": {limits: func(_ *testing.T, met *atomic.Int64) Limits {
			return Limits{Points: 50, Before: func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
				if ranged(r) >= 50*30*time.Second {
					met.Add(1)
				}
				return false
			}}
		}},
		"series of a query": {limits: func(_ *testing.T, met *atomic.Int64) Limits {
			return Limits{Series: 30, Before: func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
				if strings.Contains(r.FormValue("query"), "node!~") {
					met.Add(1)
				}
				return false
			}}
		}},
		"samples of a query": {limits: func(_ *testing.T, met *atomic.Int64) Limits {
			return Limits{Samples: 2_000, Before: func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
				if ranged(r) < time.Hour {
					met.Add(1)
				}
				return false
			}}
		}},
		"a timeout": {limits: func(_ *testing.T, met *atomic.Int64) Limits {
			return Limits{Before: func(w http.ResponseWriter, r *http.Request, _ int64) bool {
				if ranged(r) < 25*time.Minute {
					return false
				}
				met.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = fmt.Fprint(w, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`)
				return true
			}}
		}},
		"too many requests": {waits: 7 * time.Second, limits: func(_ *testing.T, met *atomic.Int64) Limits {
			return Limits{Before: func(w http.ResponseWriter, _ *http.Request, n int64) bool {
				if n%3 != 0 {
					return false
				}
				met.Add(1)
				w.Header().Set("Retry-After", "7")
				http.Error(w, "too many outstanding requests", http.StatusTooManyRequests)
				return true
			}}
		}},
		"a server that restarts": {waits: time.Second, limits: func(_ *testing.T, met *atomic.Int64) Limits {
			return Limits{Before: func(w http.ResponseWriter, _ *http.Request, n int64) bool {
				if n%3 != 0 {
					return false
				}
				met.Add(1)
				http.Error(w, "no upstream", http.StatusServiceUnavailable)
				return true
			}}
		}},
		"a body that is cut": {waits: time.Second, limits: func(t *testing.T, met *atomic.Int64) Limits {
			return Limits{Before: func(w http.ResponseWriter, r *http.Request, _ int64) bool {
				body := later(t, unlimited, r)
				if len(body) > 8000 {
					met.Add(1)
					body = body[:8000]
				}
				_, _ = w.Write(body)
				return true
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var met atomic.Int64
			past, waited := within(t, c.limits(t, &met))
			require.Equal(t, want, text(t, moments(t, past, 30, 230)))
			require.Positive(t, met.Load(), "the control: the limit was met")
			if c.waits > 0 {
				require.Contains(t, *waited, c.waits)
			} else {
				require.Empty(t, *waited)
			}
		})
	}
}

// TestAMissingAnswerDoesNotCountAsAFault: what a server does not answer ends the reading with a
// sentence that says what to do.
func TestAMissingAnswerDoesNotCountAsAFault(t *testing.T) {
	t.Parallel()
	always := func(code int, body string) Limits {
		return Limits{Before: func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body)
			return true
		}}
	}
	for name, c := range map[string]struct {
		limits Limits
		says   []string
	}{
		"busy":               {always(http.StatusTooManyRequests, "later"), []string{"is busy or down: after 6 tries", "the answer is 429 Too Many Requests", "Run the backtest again later"}},
		"down":               {always(http.StatusBadGateway, "no upstream"), []string{"is busy or down", "no upstream"}},
		"not let in":         {always(http.StatusUnauthorized, "no token"), []string{"the answer is 401 Unauthorized", "Check --prometheus and --http-config"}},
		"another program":    {always(http.StatusOK, "<html>sign in</html>"), []string{"the answer is a web page and not that of Prometheus' API"}},
		"no such API":        {always(http.StatusNotFound, "404 page not found"), []string{"the answer is 404 Not Found", "Check --prometheus"}},
		"always cut":         {always(http.StatusOK, `{"status":"success","data":{"resultType":"matrix","res`), []string{"even for a single time", "the answer is cut off or damaged", "Raise this limit"}},
		"too many samples":   {Limits{Samples: 1}, []string{"even for a single time", "too many samples", "Raise this limit of the server"}},
		"too many series":    {Limits{Series: 1}, []string{"even for a single time", "maximum number of series"}},
		"a part of the data": {Limits{Warnings: []string{"store gateway-3 is unavailable"}}, []string{"gave only a part of the data", "store gateway-3 is unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			past := open(t, day(t, 4).ServeWithin(c.limits), history.Options{Rules: rulesOf(t, unready)})
			past.Patient(func(context.Context, time.Duration) error { return nil })
			got, err := read(past, 60, 80)
			require.Error(t, err)
			require.Empty(t, got)
			for _, says := range c.says {
				require.ErrorContains(t, err, says)
			}
		})
	}
}

// TestAServerThatIsNotThereIsNamedAtOnce: its address may be wrong.
func TestAServerThatIsNotThereIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	past := open(t, "http://127.0.0.1:1/prometheus", history.Options{Recorded: true})
	past.Patient(func(context.Context, time.Duration) error {
		t.Error("it waits")
		return nil
	})
	_, err := read(past, 10, 20)
	require.ErrorContains(t, err, "Prometheus at http://127.0.0.1:1/prometheus does not answer the query for ")
	require.ErrorContains(t, err, "Check --prometheus and --http-config")
}

// TestAPromQLWarningDoesNotCountAsMissingData.
func TestAPromQLWarningDoesNotCountAsMissingData(t *testing.T) {
	t.Parallel()
	past := open(t, day(t, 4).ServeWithin(Limits{Warnings: []string{"PromQL warning: a metric is no counter"}}), history.Options{Rules: rulesOf(t, unready)})
	require.NotEmpty(t, moments(t, past, 60, 200))
}

// TestErrorsDoNotContainThePassword of the URL: it ends in the log of whatever ran the backtest.
func TestErrorsDoNotContainThePassword(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, fmt.Sprint("no: ", len(password), " ", password), http.StatusUnauthorized)
	}))
	defer server.Close()
	_, err := read(open(t, strings.Replace(server.URL, "://", "://ops:s3cret@", 1), history.Options{Recorded: true}), 10, 20)
	require.ErrorContains(t, err, "no: 6", "the server has it")
	require.NotContains(t, err.Error(), "s3cret")
	_, err = history.OpenPrometheus("ops:s3cret@prometheus", nil, history.Options{})
	require.ErrorContains(t, err, "http://HOST:PORT")
	require.NotContains(t, err.Error(), "s3cret")
}

// TestAnyChunkingGivesTheSameMoments: however much is read at once, and however little the server
// gives at once.
func TestAnyChunkingGivesTheSameMoments(t *testing.T) {
	t.Parallel()
	r := busyDay(t)
	o := history.Options{Rules: rulesOf(t, stateful), NodeTaints: []string{"gpu"}}
	all := moments(t, pastOf(t, r, o), 30, 230)
	require.Greater(t, len(all), 100)
	want := text(t, all)
	rapid.Check(t, func(d *rapid.T) {
		past := open(t, r.ServeWithin(Limits{Points: rapid.IntRange(20, 600).Draw(d, "points"), Series: rapid.SampledFrom([]int{0, 30, 75}).Draw(d, "series")}), o)
		past.ReadAtOnce(time.Duration(rapid.IntRange(15, 300).Draw(d, "minutes")) * time.Minute)
		require.Equal(d, want, text(t, moments(t, past, 30, 230)))
	})
}

// TestNoChangeOfANodeIsMissed: whatever comes to the Nodes, and wherever the spans end, asking
// about the nodes that changed alone gives what asking about all of them gives.
func TestNoChangeOfANodeIsMissed(t *testing.T) {
	t.Parallel()
	asked, all := 0, 0
	rapid.Check(t, func(d *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(d, "seed"), 0))
		machines := make([]Machine, 12)
		gone := make([]bool, len(machines))
		for i := range machines {
			machines[i] = Machine{Name: fmt.Sprintf("node-%d", i), Labels: `,label_pool="a"`}
		}
		r := New(t)
		Every(0, 150, func(when time.Time, minutes float64) {
			if random.IntN(12) == 0 {
				m := &machines[random.IntN(4)] // the others stay as they are
				switch random.IntN(7) {
				case 0:
					m.Ready = []string{"", "false", "unknown"}[random.IntN(3)]
				case 1:
					m.Cordoned = !m.Cordoned
				case 2:
					m.Taint = []string{"", "gpu"}[random.IntN(2)]
				case 3:
					m.Role = []string{"", "control-plane"}[random.IntN(2)]
				case 4:
					m.Labels = []string{`,label_pool="a"`, `,label_pool="b"`}[random.IntN(2)]
				case 5:
					m.Created = At(minutes)
				case 6:
					gone[random.IntN(4)] = random.IntN(2) == 0
				}
			}
			var shown []Machine
			for i, m := range machines {
				if !gone[i] {
					shown = append(shown, m)
				}
			}
			r.Scrape(when, "a", KubeStateMetrics("a", shown...))
		})
		span := time.Duration(10+random.IntN(60)) * time.Minute
		o := history.Options{NodeLabels: []string{"pool"}, NodeTaints: []string{"gpu"}, NodeConditions: map[string]bool{"DiskPressure": false}}
		got := make([]string, 2)
		for i, n := range []*int{&asked, &all} {
			var mu sync.Mutex
			past := open(t, r.ServeWithin(Limits{Asked: func(query string, _, _ time.Time) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(query, "offset") && !strings.Contains(query, `node=~"node`) {
					*n++
				}
			}}), o)
			past.ReadAtOnce(span)
			if i == 1 {
				past.AskAboutEveryNode()
			}
			got[i] = text(t, moments(t, past, 20, 140))
		}
		require.Equal(d, got[1], got[0])
	})
	require.Less(t, asked, all/4, "the control: it asks about few nodes")
}
