package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/intake"
)

// byName returns the Recorder's result for an alert, by the name of its node.
func byName(a alert) (intake.Result, error) {
	switch node := a.Labels["node"]; node {
	case "broken":
		return "", errors.New("the API server is away")
	case "odd":
		return "perhaps", nil
	case "":
		return intake.NoTarget, nil
	default:
		if intake.Result(node).Known() {
			return intake.Result(node), nil
		}
		return intake.Accepted, nil
	}
}

func TestEveryAnswerAndItsEffect(t *testing.T) {
	recorded, err := os.ReadFile("testdata/post.json")
	require.NoError(t, err)
	const limit = 8 << 10
	body := postOf(fire("n1"))
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	without := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Del(name) }
	}
	cases := map[string]struct {
		method, path, body string
		change             func(*http.Request)
		code               int
		answer             string // the whole of a 200, part of the others
		written            []string
		oversized          bool
	}{
		"a real post":             {body: string(recorded), code: 200, answer: `{"accepted":2,"ignored":0}`, written: []string{"k3s-prod-1-pool-a1b2 firing", "k3s-prod-1-pool-a1b2 resolved"}},
		"one of each result":      {body: postOf(fire("n1"), fire("unchanged"), fire("no_policy"), fire("no_target"), fire("unknown_node"), fire("other_cluster"), fire("node_full")), code: 200, answer: `{"accepted":2,"ignored":5}`, written: []string{"n1 firing", "unchanged firing"}},
		"the self-test":           {body: postOf(fire("self_test")), code: 200, answer: `{"accepted":1,"ignored":0}`, written: []string{"self_test firing"}},
		"no alerts":               {body: postOf(), code: 200, answer: `{"accepted":0,"ignored":0}`},
		"a charset":               {body: body, change: with("Content-Type", "application/json; charset=utf-8"), code: 200, answer: `{"accepted":1,"ignored":0}`, written: []string{"n1 firing"}},
		"a scheme in small":       {body: body, change: with("Authorization", "bearer "+secret), code: 200, answer: `{"accepted":1,"ignored":0}`, written: []string{"n1 firing"}},
		"a body without length":   {body: body, change: func(r *http.Request) { r.ContentLength = -1 }, code: 200, answer: `{"accepted":1,"ignored":0}`, written: []string{"n1 firing"}},
		"no body":                 {body: "", code: 400, answer: "not an Alertmanager payload"},
		"not JSON":                {body: "node=n1", code: 400, answer: "invalid character"},
		"JSON cut short":          {body: body[:len(body)-9], code: 400, answer: "unexpected end"},
		"JSON and more":           {body: body + "{}", code: 400, answer: "after top-level value"},
		"another version":         {body: strings.Replace(body, `"4"`, `"5"`, 1), code: 400, answer: `version is "5"; Drydock reads only version 4`},
		"a version as a number":   {body: strings.Replace(body, `"4"`, `4`, 1), code: 400, answer: "cannot unmarshal number"},
		"no version":              {body: "{}", code: 400, answer: `version is ""`},
		"a list":                  {body: "[]", code: 400, answer: "cannot unmarshal array"},
		"null":                    {body: "null", code: 400, answer: `version is ""`},
		"no list of alerts":       {body: `{"version":"4"}`, code: 400, answer: "no list of alerts"},
		"alerts are null":         {body: `{"version":"4","alerts":null}`, code: 400, answer: "no list of alerts"},
		"alerts are an object":    {body: `{"version":"4","alerts":{}}`, code: 400, answer: "no list of alerts"},
		"an alert is null":        {body: postOf(fire("n1"), "null"), code: 400, answer: "alert 2 of the payload is null"},
		"an alert is a string":    {body: postOf(`"n1"`), code: 400, answer: "alert 1 of the payload cannot be read"},
		"a label is a number":     {body: postOf(`{"status":"firing","labels":{"node":1}}`), code: 400, answer: "cannot unmarshal number"},
		"a time that is none":     {body: postOf(strings.Replace(fire("n1"), "2026-11-20T20:55:00Z", "yesterday", 1)), code: 400, answer: "parsing time"},
		"fewer than no truncated": {body: strings.Replace(body, `"truncatedAlerts":0`, `"truncatedAlerts":-1`, 1), code: 400, answer: "truncatedAlerts"},
		"an error that is long":   {body: postOf(strings.Replace(fire("n1"), "2026-11-20T20:55:00Z", strings.Repeat("é", 2000), 1)), code: 400, answer: "…"},
		"no token":                {body: body, change: without("Authorization"), code: 401, answer: "must have a bearer token"},
		"another scheme":          {body: body, change: with("Authorization", "Basic "+secret), code: 401, answer: "must have a bearer token"},
		"a wrong token":           {body: body, change: with("Authorization", "Bearer s3cret-tokem"), code: 401, answer: "the bearer token is wrong"},
		"a token cut short":       {body: body, change: with("Authorization", "Bearer s3cret"), code: 401, answer: "the bearer token is wrong"},
		"no token, huge body":     {body: strings.Repeat(" ", limit+1), change: without("Authorization"), code: 401, answer: "a bearer token"},
		"another path":            {path: "/v2/alerts", body: body, code: 404, answer: "/v1/alerts"},
		"a slash too many":        {path: "/v1/alerts/", body: body, code: 404, answer: "/v1/alerts"},
		"a GET":                   {method: "GET", code: 405, answer: "only POST"},
		"a DELETE":                {method: "DELETE", code: 405, answer: "only POST"},
		"a long body":             {body: strings.Repeat(" ", limit+1), code: 413, answer: "longer than 8192 bytes (receiver.maxBodyBytes); set group_by: [alertname, cluster, node] on Alertmanager's route", oversized: true},
		"a long body in chunks":   {body: strings.Repeat(" ", limit+1), change: func(r *http.Request) { r.ContentLength = -1 }, code: 413, answer: "longer than 8192 bytes", oversized: true},
		"a body of the limit":     {body: body + strings.Repeat(" ", limit-len(body)), code: 200, answer: `{"accepted":1,"ignored":0}`, written: []string{"n1 firing"}},
		"a form":                  {body: body, change: with("Content-Type", "application/x-www-form-urlencoded"), code: 415, answer: "application/json"},
		"no type of content":      {body: body, change: without("Content-Type"), code: 415, answer: "application/json"},
		"a body compressed":       {body: body, change: with("Content-Encoding", "gzip"), code: 415, answer: "no Content-Encoding"},
		"one that cannot be":      {body: postOf(fire("n1"), fire("broken"), fire("no_policy"), fire("n2")), code: 503, answer: "1 of 4 alerts were not accepted within 10s, the others were", written: []string{"n1 firing", "n2 firing"}},
		"a result of nobody's":    {body: postOf(fire("odd")), code: 503, answer: "1 of 1 alerts"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, oversized, refused := &book{verdict: byName}, []string{}, 0
			registry := prometheus.NewPedanticRegistry()
			s := newServer(t, Options{TokenFile: write(t, "token", secret+"\n"), MaxBodyBytes: limit, Recorder: b, Registerer: registry, Oversized: func(why string) { oversized = append(oversized, why) }, Refused: func() { refused++ }})
			if tc.method == "" {
				tc.method = http.MethodPost
			}
			if tc.path == "" {
				tc.path = "/v1/alerts"
			}
			r := request(tc.method, tc.path, tc.body)
			if tc.change != nil {
				tc.change(r)
			}
			w := do(s, r)
			require.Equal(t, tc.code, w.Code, w.Body.String())
			require.Equal(t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
			if tc.code == 200 {
				require.Equal(t, tc.answer, w.Body.String())
			} else {
				require.Contains(t, errorOf(t, w), tc.answer)
				require.LessOrEqual(t, len(errorOf(t, w)), maxSentenceBytes+len("…"))
				require.NotContains(t, w.Body.String(), secret)
			}
			require.Equal(t, tc.code == 503, w.Header().Get("Retry-After") != "")
			require.Equal(t, tc.code == 401, w.Header().Get("WWW-Authenticate") == "Bearer")
			require.Equal(t, tc.code == 405, w.Header().Get("Allow") == "POST")
			require.Equal(t, append([]string{}, tc.written...), b.names())
			if tc.oversized {
				require.Equal(t, []string{errorOf(t, w)}, oversized, "the cause of the answer")
			} else {
				require.Empty(t, oversized)
			}
			require.Equal(t, tc.code == 401, refused == 1)
			require.InDelta(t, 1, testutil.ToFloat64(s.metrics.posts.WithLabelValues(strconv.Itoa(tc.code))), 0)
			require.Empty(t, s.posts, "a place was not given back")
		})
	}
}

func TestTooManyAlertsAreTooLarge(t *testing.T) {
	var oversized []string
	s := newServer(t, Options{Oversized: func(why string) { oversized = append(oversized, why) }})
	require.Equal(t, 200, do(s, request("POST", "/v1/alerts", postOf(strings.Repeat("{},", maxAlerts-1)+"{}"))).Code)
	w := do(s, request("POST", "/v1/alerts", postOf(strings.Repeat("{},", maxAlerts)+"{}")))
	require.Equal(t, 413, w.Code)
	require.Contains(t, errorOf(t, w), "more than 10000 alerts; set group_by: [alertname, cluster, node] on Alertmanager's route")
	require.Equal(t, []string{"the post has more than 10000 alerts; set group_by: [alertname, cluster, node] on Alertmanager's route"}, oversized)
}

func TestMetricsStartAtZeroAndCount(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := newServer(t, Options{Recorder: &book{verdict: byName}, Registerer: registry})
	require.Equal(t, len(intake.Results()), testutil.CollectAndCount(s.metrics.alerts))
	require.Equal(t, len(codes()), testutil.CollectAndCount(s.metrics.posts))

	do(s, request("POST", "/v1/alerts", postOf(fire("n1"), fire("broken"), fire("unknown_node"), alertJSON("thinking", "n2"))))
	expected := `# HELP drydock_alerts_received_total Alerts received by webhook, by result. An accepted alert is on its Node or queued for it. Alerts that Drydock could not write or queue are not counted: Drydock answers their post with 503, and Alertmanager sends it again.
# TYPE drydock_alerts_received_total counter
`
	for _, r := range intake.Results() {
		n := map[intake.Result]int{intake.Accepted: 1, intake.UnknownNode: 1, intake.NoTarget: 1}[r]
		expected += fmt.Sprintf("drydock_alerts_received_total{result=%q} %d\n", r, n)
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(expected), "drydock_alerts_received_total"))

	_, err := New(Options{Listen: "127.0.0.1:0", Recorder: &book{}, Registerer: registry})
	require.ErrorContains(t, err, "registering the receiver's metrics")
}
