package alertmanager

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alerts"
)

var selfTestLabels = map[string]string{"alertname": "DrydockSelfTest", "node": "n1", "remediation": "node-not-ready"}

func isSelfTest(l map[string]string) bool { return l["alertname"] == "DrydockSelfTest" }

// to returns a change that routes an alert to these receivers.
func to(a *models.GettableAlert, receivers ...string) *models.GettableAlert {
	a.Receivers = nil
	for _, r := range receivers {
		a.Receivers = append(a.Receivers, &models.ReceiverReference{Name: &r})
	}
	return a
}

// receiversNamed returns a handler that answers like the API's /receivers.
func receiversNamed(t *testing.T, names ...string) http.HandlerFunc {
	t.Helper()
	out := []map[string]any{}
	for _, n := range names {
		out = append(out, map[string]any{"name": n})
	}
	body, err := json.Marshal(out)
	require.NoError(t, err)
	return jsonly(body)
}

// TestSelfTestShowsWhereItIsRouted: the self-test's alert is never among the alerts of interest,
// even if a policy selects it.
func TestSelfTestShowsWhereItIsRouted(t *testing.T) {
	forbidden := func(http.ResponseWriter, *http.Request) { t.Error("nobody asks for the receivers where it is routed") }
	url := parts(t, list(t,
		shown("active", node("n1")),
		to(shown("active", selfTestLabels), "pager", "drydock", "pager"),
		inhibited(silenced(to(shown("suppressed", map[string]string{"alertname": "DrydockSelfTest", "cluster": "b"})), "s1"), "9f2c0e5b6d1a4c33"),
	), map[string]http.HandlerFunc{"GET /alerts/groups": jsonly([]byte("[]")), "GET /receivers": forbidden})
	r := only(t, Options{URLs: []string{url}, Receiver: "drydock", SelfTest: isSelfTest})
	require.NoError(t, r.Err)
	require.Len(t, r.Alerts, 1)
	require.NotContains(t, r.Alerts, keyOf(selfTestLabels))
	times := alerts.Alert{StartsAt: began, EndsAt: began.Add(time.Hour), UpdatedAt: began.Add(time.Minute)}
	ours, others := times, times
	ours.Labels, ours.Active, ours.Receivers, ours.SilencedBy, ours.InhibitedBy = selfTestLabels, true, []string{"drydock", "pager"}, []string{}, []string{}
	others.Labels, others.SilencedBy, others.InhibitedBy = map[string]string{"alertname": "DrydockSelfTest", "cluster": "b"}, []string{"s1"}, []string{"9f2c0e5b6d1a4c33"}
	require.ElementsMatch(t, []alerts.Alert{ours, others}, r.SelfTest)
	require.False(t, r.NoReceiver)

	r = only(t, Options{URLs: []string{url}, Receiver: "drydock"})
	require.Empty(t, r.SelfTest, "not asked for")
	require.Len(t, r.Alerts, 3)
}

func TestSelfTestThatIsMutedSaysSo(t *testing.T) {
	muted := to(shown("suppressed", selfTestLabels), "drydock")
	muted.Status.MutedBy = []string{"nights"}
	group, err := json.Marshal([]map[string]any{{"alerts": []any{muted}, "labels": map[string]string{}, "receiver": map[string]string{"name": "drydock"}}})
	require.NoError(t, err)
	url := parts(t, list(t, to(shown("active", selfTestLabels), "drydock")), map[string]http.HandlerFunc{"GET /alerts/groups": jsonly(group)})
	r := only(t, Options{URLs: []string{url}, Receiver: "drydock", SelfTest: isSelfTest, Keep: func(map[string]string) bool { return false }})
	require.NoError(t, r.Err)
	require.Equal(t, []string{"nights"}, r.SelfTest[0].MutedBy)
}

// TestSelfTestThatIsRoutedElsewhereNamesTheReceivers: a person needs the receivers to correct the
// route. If they cannot be read, the poll still succeeds.
func TestSelfTestThatIsRoutedElsewhereNamesTheReceivers(t *testing.T) {
	for name, c := range map[string]struct {
		receivers http.HandlerFunc
		missing   bool
		similar   []string
	}{
		"there is one of the name":   {receivers: receiversNamed(t, "pager", "drydock")},
		"there is none of the name":  {receivers: receiversNamed(t, "pager", "drydock2", "not-drydock"), missing: true},
		"an AlertmanagerConfig's is": {receivers: receiversNamed(t, "monitoring/drydock/drydock", "pager"), missing: true, similar: []string{"monitoring/drydock/drydock"}},
		"no answer":                  {receivers: code(http.StatusInternalServerError, "boom")},
		"a receiver without a name":  {receivers: jsonly([]byte(`[{}]`))},
		"a list cut short":           {receivers: jsonly([]byte(`[{"name":"pager"}`))},
	} {
		t.Run(name, func(t *testing.T) {
			url := parts(t, list(t, to(shown("active", selfTestLabels), "pager")), map[string]http.HandlerFunc{
				"GET /alerts/groups": jsonly([]byte("[]")), "GET /receivers": c.receivers,
			})
			r := only(t, Options{URLs: []string{url}, Receiver: "drydock", SelfTest: isSelfTest})
			require.NoError(t, r.Err)
			require.Equal(t, []string{"pager"}, r.SelfTest[0].Receivers)
			require.Equal(t, c.missing, r.NoReceiver)
			require.Equal(t, c.similar, r.Akin)
		})
	}
}

// TestAlertsShowWhereTheyAreRouted: the full names count. A name that is too long is never cut to
// another receiver's name.
func TestAlertsShowWhereTheyAreRouted(t *testing.T) {
	long := strings.Repeat("x", maxWords)
	url := replies(t,
		to(shown("active", node("n1")), "pager", "drydock", "pager"),
		to(shown("active", node("n2"))),
		to(shown("active", node("n3")), long+"y"),
	)
	r := only(t, Options{URLs: []string{url}})
	require.NoError(t, r.Err)
	require.Equal(t, []string{"drydock", "pager"}, r.Alerts[keyOf(node("n1"))].Receivers)
	require.Empty(t, r.Alerts[keyOf(node("n2"))].Receivers)
	require.NotContains(t, r.Alerts[keyOf(node("n3"))].Receivers, long)
}
