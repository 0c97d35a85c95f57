package alertmanager

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alerts"
)

func node(name string) map[string]string {
	return map[string]string{"alertname": "NodeNotReady", "node": name, "remediation": "node-not-ready"}
}

func keyOf(labels map[string]string) string {
	return (&model.Alert{Labels: labelSet(labels)}).Fingerprint().String()
}

func TestClientReportsEveryState(t *testing.T) {
	url := replies(t,
		shown("active", node("n1")),
		silenced(shown("suppressed", node("n2")), "f1b1c9b0-0000-4000-8000-000000000001"),
		inhibited(shown("suppressed", node("n3")), "9f2c0e5b6d1a4c33"),
		shown("unprocessed", node("n4")),
		shown("pondering", node("n5")),
	)
	r := only(t, Options{URLs: []string{url}})
	require.NoError(t, r.Err)
	require.Len(t, r.Alerts, 5)
	require.Equal(t, alerts.Alert{
		Labels: node("n1"), Active: true,
		StartsAt: began, EndsAt: began.Add(time.Hour), UpdatedAt: began.Add(time.Minute),
		SilencedBy: []string{}, InhibitedBy: []string{}, MutedBy: []string{}, Receivers: []string{"drydock"},
	}, r.Alerts[keyOf(node("n1"))])
	require.False(t, r.Alerts[keyOf(node("n2"))].Active)
	require.Equal(t, []string{"f1b1c9b0-0000-4000-8000-000000000001"}, r.Alerts[keyOf(node("n2"))].SilencedBy)
	require.Equal(t, []string{"9f2c0e5b6d1a4c33"}, r.Alerts[keyOf(node("n3"))].InhibitedBy)
	for _, name := range []string{"n3", "n4", "n5"} {
		require.False(t, r.Alerts[keyOf(node(name))].Active, "%s: only the state active is", name)
	}
}

// TestTimesThatJSONCannotHoldAreBroughtIntoItsYears: Alertmanager accepts such a time from any
// client that posts it, and the leader would fail when it writes the time on a Node. If the alert
// were left out instead, it would count as resolved.
func TestTimesThatJSONCannotHoldAreBroughtIntoItsYears(t *testing.T) {
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	body := string(list(t, shown("active", node("early")), shown("active", node("late")), shown("active", node("n1"))))
	for _, odd := range []string{"0000-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"} {
		body = strings.Replace(body, `"startsAt":"2026-11-20T20:55:00.000Z"`, `"startsAt":"`+odd+`"`, 1)
		body = strings.Replace(body, `"endsAt":"2026-11-20T21:55:00.000Z"`, `"endsAt":"`+odd+`"`, 1)
		body = strings.Replace(body, `"updatedAt":"2026-11-20T20:56:00.000Z"`, `"updatedAt":"`+odd+`"`, 1)
	}
	r := only(t, Options{URLs: []string{says(t, http.StatusOK, "application/json", []byte(body))}, Watchdog: `alertname="NodeNotReady"`})
	require.NoError(t, r.Err)
	require.Len(t, r.Alerts, 3)
	for name, want := range map[string]time.Time{"early": first, "late": last} {
		a := r.Alerts[keyOf(node(name))]
		require.Equal(t, []time.Time{want, want, want}, []time.Time{a.StartsAt, a.EndsAt, a.UpdatedAt}, name)
	}
	require.Equal(t, began, r.Alerts[keyOf(node("n1"))].StartsAt, "the control")
	require.Equal(t, last, r.WatchdogAt)
}

func TestClientAsksForAllStatesBelowThePrefix(t *testing.T) {
	asked := make(chan *http.Request, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte("[]\n"))
	})
	r := only(t, Options{URLs: []string{url + "/alertmanager/"}})
	require.NoError(t, r.Err)
	require.Empty(t, r.Alerts)
	require.Equal(t, url+"/alertmanager", r.URL)
	req := <-asked
	require.Equal(t, "/alertmanager/api/v2/alerts", req.URL.Path)
	for _, q := range []string{"active", "silenced", "inhibited", "unprocessed"} {
		require.Equal(t, "true", req.URL.Query().Get(q), q)
	}
}

func TestFingerprintIsAlertmanagersOwn(t *testing.T) {
	for _, labels := range []map[string]string{
		node("n1"),
		{"alertname": "Ünïcode", "k": ""},
		{"alertname": "a", "le": "+Inf", "z": strings.Repeat("x", 5000)},
	} {
		r := only(t, Options{URLs: []string{replies(t, shown("active", labels))}})
		require.NoError(t, r.Err)
		require.Contains(t, r.Alerts, keyOf(labels))
		require.NotContains(t, r.Alerts, "0000000000000000")
	}
}

func TestClientKeepsWhatIsOfInterestAndJudgesTheRest(t *testing.T) {
	r := only(t, Options{
		URLs: []string{replies(t,
			shown("active", node("n1")),
			shown("active", map[string]string{"alertname": "Watchdog"}),
			shown("active", map[string]string{"alertname": "DrydockSourceDown"}),
			shown("active", map[string]string{"alertname": "HighLatency"}),
		)},
		Watchdog:  `alertname="Watchdog"`,
		BlindWhen: []string{`alertname="DrydockSourceDown"`},
		Keep:      func(l map[string]string) bool { return l["remediation"] != "" },
	})
	require.NoError(t, r.Err)
	require.True(t, r.Watchdog)
	require.Equal(t, began.Add(time.Minute), r.WatchdogAt, "when it was last received")
	require.True(t, r.SourceDown)
	require.Empty(t, r.BlindBy)
	require.Len(t, r.Alerts, 1)
	require.Contains(t, r.Alerts, keyOf(node("n1")))
}

func TestClientLooksForTheWatchdog(t *testing.T) {
	watchdog := map[string]string{"alertname": "Watchdog", "cluster": "prod-1"}
	cases := map[string]struct {
		url      string
		matchers string
		want     bool
	}{
		"present":               {replies(t, shown("active", watchdog)), `alertname="Watchdog"`, true},
		"silenced still proves": {replies(t, silenced(shown("suppressed", watchdog), "s1")), `alertname="Watchdog"`, true},
		"absent":                {replies(t, shown("active", node("n1"))), `alertname="Watchdog"`, false},
		"of another cluster":    {replies(t, shown("active", watchdog)), `{alertname="Watchdog",cluster="prod-2"}`, false},
		"not asked for":         {replies(t, shown("active", watchdog)), "", false},
		"no reply":              {says(t, 500, "application/json", []byte(`"boom"`)), `alertname="Watchdog"`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, only(t, Options{URLs: []string{tc.url}, Watchdog: tc.matchers}).Watchdog)
		})
	}
}

// TestClientReportsWhenTheSourceWasSeen: one Prometheus that sees the nodes is enough, among
// replicas, shards and clusters.
func TestClientReportsWhenTheSourceWasSeen(t *testing.T) {
	seen := map[string]string{"alertname": "DrydockSelfTest", "source": "seen", "cluster": "prod-1"}
	o := Options{SourceSeen: `alertname="DrydockSelfTest",source="seen",cluster="prod-1"`, BlindWhen: []string{`alertname="DrydockSourceDown"`}}
	down := map[string]string{"alertname": "DrydockSourceDown"}
	for name, c := range map[string]struct {
		shown []*models.GettableAlert
		seen  bool
	}{
		"seen":                  {[]*models.GettableAlert{shown("active", down), shown("active", seen)}, true},
		"silenced still proves": {[]*models.GettableAlert{silenced(shown("suppressed", seen), "s1")}, true},
		"of another cluster":    {[]*models.GettableAlert{shown("active", map[string]string{"alertname": "DrydockSelfTest", "source": "seen", "cluster": "prod-2"})}, false},
		"the self-test alone":   {[]*models.GettableAlert{shown("active", map[string]string{"alertname": "DrydockSelfTest", "cluster": "prod-1"})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o.URLs = []string{replies(t, c.shown...)}
			r := only(t, o)
			require.NoError(t, r.Err)
			if c.seen {
				require.Equal(t, &alerts.Alert{UpdatedAt: began.Add(time.Minute), EndsAt: began.Add(time.Hour)}, r.SourceSeen)
			} else {
				require.Nil(t, r.SourceSeen)
			}
		})
	}
	o.URLs = []string{replies(t, shown("active", down), shown("active", seen))}
	r := only(t, o)
	require.True(t, r.SourceDown)
	require.Empty(t, r.BlindBy)
	require.NotNil(t, r.SourceSeen)
}

func TestClientIsBlindByActiveAlertsOnly(t *testing.T) {
	down := map[string]string{"alertname": "DrydockSourceDown"}
	nameless := map[string]string{"job": "kube-state-metrics"}
	other := func(instance string) *models.GettableAlert {
		return shown("active", map[string]string{"alertname": "ATargetIsDown", "job": "kube-state-metrics", "instance": instance})
	}
	options := Options{BlindWhen: []string{`alertname="DrydockSourceDown"`, `job=~"kube-state-.*"`}}
	options.URLs = []string{replies(t, shown("active", nameless), other("a"), shown("active", down), other("b"), shown("suppressed", node("n1")))}
	r := only(t, options)
	require.True(t, r.SourceDown)
	names := []string{"ATargetIsDown", keyOf(nameless)}
	slices.Sort(names)
	require.Equal(t, strings.Join(names, ", "), r.BlindBy, "sorted, each once")
	options.URLs = []string{replies(t, silenced(shown("suppressed", down), "s1"), shown("unprocessed", nameless))}
	r = only(t, options)
	require.False(t, r.SourceDown)
	require.Empty(t, r.BlindBy)
}

func TestClientRefusesWhatIsNotAnAnswer(t *testing.T) {
	const json = "application/json"
	whole := list(t, shown("active", node("n1")))
	noState, noStart := shown("active", node("n1")), shown("active", node("n1"))
	noState.Status.State, noStart.StartsAt = nil, nil
	cases := map[string]struct {
		code        int
		contentType string
		body        string
		want        string
	}{
		"nothing":                {200, json, "", "the answer is empty"},
		"null":                   {200, json, "null", "not a list of alerts"},
		"an object":              {200, json, `{"status":"success","data":[]}`, "not a list of alerts"},
		"a login page":           {200, "text/html; charset=utf-8", "<html>sign in</html>", `content of type "text/html; charset=utf-8"`},
		"no type of content":     {200, "", "[]", `content of type ""`},
		"a page called JSON":     {200, json, "<html>sign in</html>", "invalid character '<'"},
		"a list cut short":       {200, json, string(whole[:len(whole)-2]), "unexpected EOF"},
		"a list without its end": {200, json, string(whole[:len(whole)-1]), "unexpected EOF"},
		"a list and more":        {200, json, string(whole) + "[]", "continues after the list"},
		"a list and garbage":     {200, json, string(whole) + "<", "invalid character '<'"},
		"a list of nulls":        {200, json, "[null]", "is not Alertmanager's"},
		"a list of numbers":      {200, json, "[1]", "cannot unmarshal"},
		"an alert without state": {200, json, string(list(t, noState)), "is not Alertmanager's"},
		"an alert without begin": {200, json, string(list(t, noStart)), "is not Alertmanager's"},
		"an alert of no labels":  {200, json, string(list(t, shown("active", nil))), "is not Alertmanager's"},
		"an alert twice":         {200, json, string(list(t, shown("active", node("n1")), shown("suppressed", node("n1")))), "NodeNotReady twice"},
		"too many requests":      {503, "text/plain", "Limit of concurrent GET requests reached (16), try again later.", "503 Service Unavailable"},
		"not allowed":            {401, "text/plain", "Unauthorized", "401 Unauthorized"},
		"no such page":           {404, "text/plain", "404", "404 Not Found"},
		"an empty 204":           {204, json, "", "204 No Content"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := says(t, tc.code, tc.contentType, []byte(tc.body))
			r := only(t, Options{URLs: []string{url}, Watchdog: `alertname="Watchdog"`})
			require.ErrorContains(t, r.Err, "asking Alertmanager "+url)
			require.ErrorContains(t, r.Err, tc.want)
			require.Nil(t, r.Alerts)
		})
	}
}

func TestClientFollowsNoRedirect(t *testing.T) {
	target := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
	r := only(t, Options{URLs: []string{url}, HTTPConfig: config.HTTPClientConfig{FollowRedirects: true}})
	require.ErrorContains(t, r.Err, "302 Found, and redirects are not followed")
}

func TestClientRefusesAHugeAnswer(t *testing.T) {
	whole := list(t, shown("active", node("n1")), shown("active", node("n2")))
	c := newClient(t, Options{URLs: []string{says(t, 200, "application/json", whole)}})
	require.EqualValues(t, 64<<20, c.answerBytes)

	c.answerBytes = int64(len(whole))
	require.NoError(t, c.Look(t.Context())[0].Err, "exactly the limit")

	c.answerBytes--
	r := c.Look(t.Context())[0]
	require.ErrorContains(t, r.Err, fmt.Sprintf("the answer is longer than %d bytes", len(whole)-1))
	require.Nil(t, r.Alerts)
}

func TestClientRefusesTooManyAlerts(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("[")
	for i := range maxAlerts + 1 {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"labels":{"alertname":"A","node":"n%d"},"startsAt":"2026-11-20T20:55:00Z","status":{"state":"active"}}`, i)
	}
	b.WriteString("]")
	url := says(t, 200, "application/json", b.Bytes())
	r := only(t, Options{URLs: []string{url}, Timeout: time.Hour})
	require.ErrorContains(t, r.Err, "more than 20000 alerts of interest")
	require.Nil(t, r.Alerts)

	few := func(l map[string]string) bool { return l["node"] == "n20000" }
	r = only(t, Options{URLs: []string{url}, Timeout: time.Hour, Keep: few})
	require.NoError(t, r.Err, "only the alerts of interest count")
	require.Len(t, r.Alerts, 1)
}

func TestMetricFollowsTheReplicas(t *testing.T) {
	up, down := replies(t), says(t, 500, "text/plain", nil)
	registry := prometheus.NewPedanticRegistry()
	known := names{"gone.test": {"127.0.0.1"}}
	c := newClient(t, Options{URLs: []string{up, down, "http://gone.test:" + portOf(t, up) + "/prefix"}, Registerer: registry, Resolver: known.resolve})
	const help = "# HELP drydock_alertmanager_up Whether the Alertmanager replica answered the last poll with a list of alerts (1) or not (0).\n# TYPE drydock_alertmanager_up gauge\n"
	expect := func(lines ...string) {
		t.Helper()
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(help+strings.Join(lines, "\n")+"\n")))
	}
	series := func(url string, v int) string { return fmt.Sprintf("drydock_alertmanager_up{url=%q} %d", url, v) }
	c.Look(t.Context())
	expect(series(up, 1), series(down, 0), series(up+"/prefix", 1))
	delete(known, "gone.test")
	c.Look(t.Context())
	expect(series(up, 1), series(down, 0), series("http://gone.test:"+portOf(t, up)+"/prefix", 0))
}
