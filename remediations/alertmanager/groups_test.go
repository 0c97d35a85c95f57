package alertmanager

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alerts"
)

// group returns a group as a replica shows it. The alerts in the group show what mutes them.
func group(receiver string, mutedBy []string, alerts ...*models.GettableAlert) *models.AlertGroup {
	for _, a := range alerts {
		a.Status.MutedBy = mutedBy
	}
	return &models.AlertGroup{Receiver: &models.ReceiverReference{Name: &receiver}, Labels: models.LabelSet{}, RouteLabels: models.LabelSet{}, Alerts: alerts}
}

func groups(t testing.TB, all ...*models.AlertGroup) []byte {
	t.Helper()
	b, err := json.Marshal(all)
	require.NoError(t, err)
	return b
}

func TestMuteTimesAreThoseOfTheReceiver(t *testing.T) {
	asked := make(chan url.Values, 1)
	answer := groups(t,
		group("dry.dock", []string{"weekends", "nights"}, shown("suppressed", node("n1"))),
		group("dry.dock", []string{"holidays", "nights"}, shown("suppressed", node("n1"))),
		group("dry.dock", []string{}, shown("active", node("n1")), shown("active", node("n2"))),
		group("dry-dock", []string{"nights"}, shown("suppressed", node("n2"))),
		group("dry.dock", []string{"nights"}, shown("suppressed", node("came-later")), shown("suppressed", node("not-ours"))),
	)
	am := parts(t, list(t, shown("active", node("n1")), shown("active", node("n2")), shown("active", node("not-ours"))), map[string]http.HandlerFunc{
		"GET /alerts/groups": func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Query()
			jsonly(answer)(w, r)
		},
	})
	r := only(t, Options{URLs: []string{am}, Receiver: "dry.dock", Keep: func(l map[string]string) bool { return l["node"] != "not-ours" }})
	require.NoError(t, r.Err)
	require.Len(t, r.Alerts, 2)
	require.Equal(t, []string{"holidays", "nights", "weekends"}, r.Alerts[keyOf(node("n1"))].MutedBy)
	require.True(t, r.Alerts[keyOf(node("n1"))].Active, "the alert's own state knows no mute time")
	require.Empty(t, r.Alerts[keyOf(node("n2"))].MutedBy)
	require.Equal(t, url.Values{
		"receiver": {`^(?:dry\.dock)$`}, "active": {"true"}, "silenced": {"true"}, "inhibited": {"true"}, "muted": {"true"},
	}, <-asked)
}

func TestMuteTimesAreNotAskedForWithoutAReceiver(t *testing.T) {
	am := parts(t, list(t, shown("active", node("n1"))), map[string]http.HandlerFunc{
		"GET /alerts/groups": func(http.ResponseWriter, *http.Request) { t.Error("the groups were asked for") },
	})
	require.NoError(t, only(t, Options{URLs: []string{am}}).Err)
}

// TestGroupsAreLeftOutOnlyWhereNothingCanMute: only Alertmanager's own answer about its
// configuration makes Drydock leave out the request.
func TestGroupsAreLeftOutOnlyWhereNothingCanMute(t *testing.T) {
	status := func(original string) http.HandlerFunc {
		body, err := json.Marshal(map[string]any{"config": map[string]string{"original": original}})
		require.NoError(t, err)
		return jsonly(body)
	}
	const plain = "route:\n  receiver: drydock\nreceivers:\n- name: drydock\n"
	for name, c := range map[string]struct {
		status http.HandlerFunc
		asked  bool
	}{
		"no times":                   {status(plain), false},
		"a route that is muted":      {status(plain + "# mute_time_intervals: [nights]"), true},
		"a route that is confined":   {status(plain + "# active_time_intervals: [days]"), true},
		"an empty configuration":     {status(""), true},
		"no configuration":           {jsonly([]byte(`{"config": {}}`)), true},
		"nothing":                    {jsonly([]byte(`{}`)), true},
		"null":                       {jsonly([]byte(`null`)), true},
		"something else":             {jsonly([]byte(`[]`)), true},
		"an error":                   {code(http.StatusInternalServerError, ""), true},
		"a login page":               {code(http.StatusOK, "<html>receivers: sign in</html>"), true},
		"more than a whole fleet's":  {status(plain + strings.Repeat("#", maxObjectBytes)), true},
		"an answer that breaks off":  {jsonly([]byte(`{"config": {"original": "receivers:`)), true},
		"one that hides its routing": {status("route: <hidden>"), true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			am := parts(t, list(t, shown("active", node("n1"))), map[string]http.HandlerFunc{
				"GET /status": c.status,
				"GET /alerts/groups": func(w http.ResponseWriter, r *http.Request) {
					asked = true
					jsonly(groups(t, group("drydock", []string{"nights"}, shown("suppressed", node("n1")))))(w, r)
				},
			})
			r := only(t, Options{URLs: []string{am}, Receiver: "drydock"})
			require.NoError(t, r.Err)
			require.Equal(t, c.asked, asked)
			require.Equal(t, c.asked, len(r.Alerts[keyOf(node("n1"))].MutedBy) > 0)
		})
	}
}

func TestUnknownMuteTimesFailTheReplica(t *testing.T) {
	t.Parallel()
	whole := groups(t, group("drydock", []string{"nights"}, shown("suppressed", node("n1"))))
	nameless := group("drydock", nil, shown("active", node("n1")))
	nameless.Receiver.Name = nil
	noReceiver := group("drydock", nil, shown("active", node("n1")))
	noReceiver.Receiver = nil
	login := code(http.StatusOK, "<html>sign in</html>")
	moved := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }
	cases := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an error":              {code(http.StatusInternalServerError, `"boom"`), "it answered 500 Internal Server Error"},
		"no such page":          {code(http.StatusNotFound, ""), "it answered 404 Not Found"},
		"a redirect":            {moved, "302 Found, and redirects are not followed"},
		"a login page":          {login, `content of type "text/html; charset=utf-8"`},
		"no answer":             {hang, "no complete answer within " + patience.String()},
		"nothing":               {jsonly(nil), "the answer is empty"},
		"null":                  {jsonly([]byte("null")), "not a list of groups"},
		"an object":             {jsonly([]byte("{}")), "not a list of groups"},
		"a list of alerts":      {jsonly(list(t, shown("active", node("n1")))), "a group without alerts or receiver"},
		"a list of nulls":       {jsonly([]byte("[null]")), "its elements are not groups"},
		"cut in the list":       {jsonly(whole[:len(whole)-1]), "unexpected EOF"},
		"cut in the group":      {jsonly(whole[:len(whole)-2]), "unexpected EOF"},
		"cut in the alerts":     {jsonly(whole[:strings.Index(string(whole), `}],"labels":`)+1]), "unexpected EOF"},
		"more than a list":      {jsonly(append(append([]byte{}, whole...), "[]"...)), "continues after the list of groups"},
		"no receiver":           {jsonly(groups(t, noReceiver)), "a group without alerts or receiver"},
		"a receiver of no name": {jsonly(groups(t, nameless)), "a group without alerts or receiver"},
		"no alerts":             {jsonly([]byte(`[{"receiver":{"name":"drydock"}}]`)), "a group without alerts or receiver"},
		"alerts that are null":  {jsonly([]byte(`[{"alerts":null,"receiver":{"name":"drydock"}}]`)), "whose alerts are not a list"},
		"an alert of no labels": {jsonly(groups(t, group("drydock", nil, shown("active", nil)))), "is not Alertmanager's"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			am := parts(t, list(t, shown("active", node("n1"))), map[string]http.HandlerFunc{"GET /alerts/groups": tc.answer})
			r := only(t, Options{URLs: []string{am}, Receiver: "drydock", Timeout: patience})
			require.ErrorContains(t, r.Err, "asking Alertmanager "+am+` for the groups of the receiver "drydock": `)
			require.ErrorContains(t, r.Err, tc.want)
			require.Equal(t, alerts.Replica{URL: am, Err: r.Err}, r)
		})
	}
}

func TestGroupsAreBoundedAsAlertsAre(t *testing.T) {
	whole := groups(t, group("drydock", []string{"nights"}, shown("suppressed", node("n1")), shown("suppressed", node("n2"))))
	am := parts(t, list(t, shown("active", node("n1"))), map[string]http.HandlerFunc{"GET /alerts/groups": jsonly(whole)})
	c := newClient(t, Options{URLs: []string{am}, Receiver: "drydock"})
	c.answerBytes = int64(len(whole))
	require.NoError(t, c.Look(t.Context())[0].Err, "exactly the limit")
	c.answerBytes--
	require.ErrorContains(t, c.Look(t.Context())[0].Err, "the answer is longer than")

	many := func(groups, alerts int) http.HandlerFunc {
		var all []string
		for g := range groups {
			var shown []string
			for a := range alerts {
				shown = append(shown, fmt.Sprintf(`{"labels":{"node":"n%d-%d"},"startsAt":"2026-11-20T20:55:00Z","status":{"state":"suppressed","mutedBy":["nights"]}}`, g, a))
			}
			all = append(all, `{"alerts":[`+strings.Join(shown, ",")+`],"receiver":{"name":"drydock"}}`)
		}
		return jsonly([]byte("[" + strings.Join(all, ",") + "]"))
	}
	for want, h := range map[string]http.HandlerFunc{
		"it has a group with more than 20000 alerts of interest": many(1, maxAlerts+1),
		"it has more than 20000 alerts of interest":              many(2, maxAlerts/2+1),
	} {
		t.Run(want, func(t *testing.T) {
			am := parts(t, list(t), map[string]http.HandlerFunc{"GET /alerts/groups": h})
			o := Options{URLs: []string{am}, Receiver: "drydock", Timeout: time.Minute}
			require.ErrorContains(t, only(t, o).Err, want)
			o.Keep = func(map[string]string) bool { return false }
			require.NoError(t, only(t, o).Err, "only the alerts of interest count")
		})
	}
}

func TestAlertsAndGroupsAreReadAtTheSameTime(t *testing.T) {
	var both [2]chan struct{}
	for i := range both {
		both[i] = make(chan struct{})
	}
	meet := func(mine, other int, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			close(both[mine])
			select {
			case <-both[other]:
				jsonly(body)(w, r)
			case <-r.Context().Done():
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v2/alerts", meet(0, 1, list(t)))
	mux.HandleFunc("GET /api/v2/alerts/groups", meet(1, 0, []byte("[]")))
	r := only(t, Options{URLs: []string{serve(t, mux.ServeHTTP)}, Receiver: "drydock", Timeout: time.Minute})
	require.NoError(t, r.Err)
}

func TestGroupsThatHangDoNotHideAnError(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v2/alerts", code(http.StatusServiceUnavailable, "busy"))
	mux.HandleFunc("GET /api/v2/alerts/groups", hang)
	began := time.Now()
	r := only(t, Options{URLs: []string{serve(t, mux.ServeHTTP)}, Receiver: "drydock", Timeout: time.Minute})
	require.ErrorContains(t, r.Err, "it answered 503 Service Unavailable")
	require.Less(t, time.Since(began), 30*time.Second)
}
