package alertmanager

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alerts"
)

func silenceID(n int) string { return fmt.Sprintf("f1b1c9b0-0000-4000-8000-%012d", n) }

// details returns a silence as a replica shows it.
func details(t testing.TB, id, author, comment string) []byte {
	t.Helper()
	start, end := strfmt.DateTime(began), strfmt.DateTime(began.Add(2*time.Hour))
	active := "active"
	b, err := json.Marshal(models.GettableSilence{
		ID: &id, Status: &models.SilenceStatus{State: &active}, UpdatedAt: &start,
		Silence: models.Silence{CreatedBy: &author, Comment: &comment, StartsAt: &start, EndsAt: &end, Matchers: models.Matchers{}},
	})
	require.NoError(t, err)
	return b
}

func TestSilencesSayWhoWhyAndUntilWhen(t *testing.T) {
	var asked sync.Map
	long := strings.Repeat("x", 255) + "é"
	url := parts(t, list(t,
		silenced(shown("suppressed", node("n1")), silenceID(1), silenceID(2)),
		silenced(shown("suppressed", node("n2")), silenceID(1)),
		silenced(shown("suppressed", node("not-ours")), silenceID(3)),
	), map[string]http.HandlerFunc{"GET /silence/{id}": func(w http.ResponseWriter, r *http.Request) {
		if _, twice := asked.LoadOrStore(r.PathValue("id"), true); twice {
			t.Errorf("the silence %s was asked for twice", r.PathValue("id"))
		}
		author, comment := "ada", "disk swap"
		if r.PathValue("id") == silenceID(2) {
			author, comment = long, long
		}
		jsonly(details(t, r.PathValue("id"), author, comment))(w, r)
	}})
	r := only(t, Options{URLs: []string{url}, Keep: func(l map[string]string) bool { return l["node"] != "not-ours" }})
	require.NoError(t, r.Err)
	end := began.Add(2 * time.Hour)
	require.Equal(t, map[string]alerts.Silence{
		silenceID(1): {Author: "ada", Comment: "disk swap", EndsAt: end},
		silenceID(2): {Author: long[:255] + "…", Comment: long[:255] + "…", EndsAt: end},
	}, r.Silences)
}

// TestTheEndOfASilenceIsATimeThatARecordCanHold: the end of a silence becomes the end of a hold,
// which is written on the Node as JSON.
func TestTheEndOfASilenceIsATimeThatARecordCanHold(t *testing.T) {
	whole := strings.Replace(string(details(t, silenceID(1), "ada", "for ever")), `"endsAt":"2026-11-20T22:55:00.000Z"`, `"endsAt":"9999-12-31T23:59:59-14:00"`, 1)
	url := parts(t, list(t, silenced(shown("suppressed", node("n1")), silenceID(1))), map[string]http.HandlerFunc{"GET /silence/{id}": jsonly([]byte(whole))})
	r := only(t, Options{URLs: []string{url}})
	require.NoError(t, r.Err)
	require.Equal(t, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), r.Silences[silenceID(1)].EndsAt)
}

func TestNoSilenceIsReadIfNoAlertIsSilenced(t *testing.T) {
	url := parts(t, list(t, shown("active", node("n1")), silenced(shown("suppressed", node("n2")), "../status", "", "s1")), map[string]http.HandlerFunc{
		"GET /": func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) },
	})
	r := only(t, Options{URLs: []string{url}})
	require.NoError(t, r.Err)
	require.Empty(t, r.Silences)
	require.Equal(t, []string{"../status", "", "s1"}, r.Alerts[keyOf(node("n2"))].SilencedBy)
}

func TestASilenceWithoutDetailsStillSilences(t *testing.T) {
	t.Parallel()
	one, two := silenceID(1), silenceID(2)
	whole := details(t, one, "ada", "disk swap")
	without := func(field string) []byte {
		var m map[string]any
		require.NoError(t, json.Unmarshal(whole, &m))
		delete(m, field)
		b, err := json.Marshal(m)
		require.NoError(t, err)
		return b
	}
	cases := map[string]http.HandlerFunc{
		"unknown":  code(http.StatusNotFound, ""),
		"an error": code(http.StatusInternalServerError, `"boom"`),
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/api/v2/silence/"+two, http.StatusFound)
		},
		"no answer":        hang,
		"nothing":          jsonly(nil),
		"null":             jsonly([]byte("null")),
		"a list":           jsonly([]byte("[]")),
		"cut short":        jsonly(whole[:len(whole)-1]),
		"more than one":    jsonly(append(append([]byte{}, whole...), whole...)),
		"a login page":     code(http.StatusOK, "<html>sign in</html>"),
		"another's":        jsonly(details(t, two, "bob", "not this one")),
		"no author":        jsonly(without("createdBy")),
		"no comment":       jsonly(without("comment")),
		"no end":           jsonly(without("endsAt")),
		"no begin":         jsonly(without("startsAt")),
		"a longer comment": jsonly(details(t, one, "ada", strings.Repeat("x", maxObjectBytes))),
	}
	for name, h := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := parts(t, list(t, silenced(shown("suppressed", node("n1")), one, two)), map[string]http.HandlerFunc{
				"GET /silence/" + one: h,
				"GET /silence/" + two: jsonly(details(t, two, "bob", "rack move")),
			})
			r := only(t, Options{URLs: []string{url}, Timeout: patience})
			require.NoError(t, r.Err)
			require.Equal(t, []string{one, two}, r.Alerts[keyOf(node("n1"))].SilencedBy)
			require.False(t, r.Alerts[keyOf(node("n1"))].Active)
			require.NotContains(t, r.Silences, one)
			require.Equal(t, "bob", r.Silences[two].Author, "one that fails does not cost another")
		})
	}
}

func TestTheNumberOfSilencesReadIsBounded(t *testing.T) {
	var ids []string
	for i := range 2 * maxSilences {
		ids = append(ids, silenceID(i))
	}
	arrived, release := make(chan struct{}, 2*maxSilences), make(chan struct{})
	url := parts(t, list(t, silenced(shown("suppressed", node("n1")), ids...)), map[string]http.HandlerFunc{
		"GET /silence/{id}": func(w http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-release
			jsonly(details(t, r.PathValue("id"), "ada", "disk swap"))(w, r)
		},
	})
	c := newClient(t, Options{URLs: []string{url}, Timeout: time.Minute})
	polled := make(chan alerts.Replica, 1)
	go func() { polled <- c.Look(t.Context())[0] }()
	for range silencesAtOnce {
		<-arrived
	}
	select {
	case <-arrived:
		t.Error("one more was asked for than may be at once")
	case <-time.After(100 * time.Millisecond): // long enough to be reasonably sure
	}
	close(release)
	r := <-polled
	require.NoError(t, r.Err)
	require.Len(t, r.Alerts[keyOf(node("n1"))].SilencedBy, 2*maxSilences, "all of them silence")
	require.Len(t, r.Silences, maxSilences)
	require.Len(t, arrived, maxSilences-silencesAtOnce)
}
