package alertmanager

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rebooting = NewSilence{
	Matchers: map[string]string{"node": "n1", "alertname": "NodeNotReady"},
	StartsAt: began, EndsAt: began.Add(10 * time.Minute),
	Author: "drydock", Comment: "rebooting n1",
}

// takes is a replica that accepts every silence, and counts them.
func takes(t testing.TB, posts *atomic.Int32) string {
	return counting(t, posts, jsonly([]byte(`{"silenceID":"`+silenceID(1)+`"}`)))
}

func counting(t testing.TB, posts *atomic.Int32, h http.HandlerFunc) string {
	return parts(t, nil, map[string]http.HandlerFunc{"POST /silences": func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		h(w, r)
	}})
}

// gone returns the URL of a replica that does not listen.
func gone(t testing.TB) string {
	s := serveAt(t, "127.0.0.1:0", nil)
	defer s.Close()
	return "http://" + s.Listener.Addr().String()
}

func TestSilenceSaysWhatItSilences(t *testing.T) {
	asked := make(chan []byte, 1)
	url := parts(t, nil, map[string]http.HandlerFunc{"POST /silences": func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked <- body
		jsonly([]byte(`{"silenceID":"`+silenceID(1)+`"}`))(w, r)
	}})
	id, err := newClient(t, Options{URLs: []string{url}}).Silence(t.Context(), rebooting)
	require.NoError(t, err)
	require.Equal(t, silenceID(1), id)
	require.JSONEq(t, `{
		"matchers": [
			{"name": "alertname", "value": "NodeNotReady", "isEqual": true, "isRegex": false},
			{"name": "node", "value": "n1", "isEqual": true, "isRegex": false}
		],
		"startsAt": "2026-11-20T20:55:00.000Z", "endsAt": "2026-11-20T21:05:00.000Z",
		"createdBy": "drydock", "comment": "rebooting n1"
	}`, string(<-asked))
}

func TestSilenceRefusesWhatIsNotNarrow(t *testing.T) {
	cases := map[string]struct {
		change func(*NewSilence)
		want   string
	}{
		"no matcher":       {func(s *NewSilence) { s.Matchers = nil }, "would silence every alert"},
		"no value":         {func(s *NewSilence) { s.Matchers = map[string]string{"node": "n1", "zone": ""} }, `"zone"="" would match alerts that have no such label`},
		"no label":         {func(s *NewSilence) { s.Matchers = map[string]string{"": "n1"} }, "no such label"},
		"no begin":         {func(s *NewSilence) { s.StartsAt = time.Time{} }, "it must begin"},
		"no end":           {func(s *NewSilence) { s.EndsAt = time.Time{} }, "end after that"},
		"over at once":     {func(s *NewSilence) { s.EndsAt = s.StartsAt }, "end after that"},
		"nobody's":         {func(s *NewSilence) { s.Author = "" }, "an author and a comment"},
		"without a reason": {func(s *NewSilence) { s.Comment = "" }, "an author and a comment"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int32
			s := rebooting
			tc.change(&s)
			_, err := newClient(t, Options{URLs: []string{takes(t, &posts)}}).Silence(t.Context(), s)
			require.ErrorContains(t, err, tc.want)
			require.Zero(t, posts.Load())
		})
	}
}

func TestSilenceGoesToTheFirstReplicaThatTakesIt(t *testing.T) {
	var refusals, posts, later atomic.Int32
	moved := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}
	passed := []string{
		gone(t),
		"http://unknown.test",
		counting(t, &refusals, code(http.StatusBadRequest, `"no"`)),
		counting(t, &refusals, code(http.StatusUnauthorized, "Unauthorized")),
		counting(t, &refusals, code(http.StatusNotFound, "")),
		counting(t, &refusals, moved),
	}
	o := Options{URLs: append(passed, takes(t, &posts), takes(t, &later)), Resolver: names{}.resolve}
	id, err := newClient(t, o).Silence(t.Context(), rebooting)
	require.NoError(t, err)
	require.Equal(t, silenceID(1), id)
	require.EqualValues(t, 4, refusals.Load())
	require.EqualValues(t, 1, posts.Load())
	require.Zero(t, later.Load())

	o.URLs = passed
	_, err = newClient(t, o).Silence(t.Context(), rebooting)
	require.NotErrorIs(t, err, ErrSilenceMayExist, "all of them refused it")
	for _, want := range []string{"connection refused", "no such host", "400 Bad Request", "401 Unauthorized", "404 Not Found", "307 Temporary Redirect"} {
		require.ErrorContains(t, err, want)
	}
}

func TestASilenceWithoutAnAnswerIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}
	for name, h := range map[string]http.HandlerFunc{
		"no answer":       hang,
		"the line is cut": cut,
		"an error":        code(http.StatusInternalServerError, `"boom"`),
		"a proxy's error": code(http.StatusGatewayTimeout, "upstream"),
		"busy":            code(http.StatusServiceUnavailable, "try again later"),
		"a login page":    code(http.StatusOK, "<html>sign in</html>"),
		"nothing":         jsonly(nil),
		"null":            jsonly([]byte("null")),
		"no id":           jsonly([]byte("{}")),
		"an odd id":       jsonly([]byte(`{"silenceID":"../status"}`)),
		"a long answer":   jsonly([]byte(`{"silenceID":"` + silenceID(1) + `"` + strings.Repeat(" ", maxObjectBytes) + `}`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts, others atomic.Int32
			c := newClient(t, Options{URLs: []string{counting(t, &posts, h), takes(t, &others)}, Timeout: patience})
			// A connection that a poll left open must make no difference.
			_ = c.Look(t.Context())
			id, err := c.Silence(t.Context(), rebooting)
			require.ErrorIs(t, err, ErrSilenceMayExist)
			require.ErrorContains(t, err, "making a silence on Alertmanager http://127.0.0.1:")
			require.Empty(t, id)
			require.EqualValues(t, 1, posts.Load())
			require.Zero(t, others.Load())
		})
	}
}

func TestExpireEndsASilenceWhereverItIs(t *testing.T) {
	t.Parallel()
	ended, unknown := code(http.StatusOK, ""), code(http.StatusNotFound, "")
	deleting := func(h http.HandlerFunc) string {
		return parts(t, nil, map[string]http.HandlerFunc{"DELETE /silence/" + silenceID(1): h})
	}
	known, first, second := deleting(ended), deleting(unknown), deleting(unknown)
	failing, hung, down := deleting(code(http.StatusInternalServerError, `"boom"`)), deleting(hang), gone(t)
	portal, lost := deleting(code(http.StatusOK, "<html>sign in</html>")), deleting(code(http.StatusNotFound, "404 page not found"))
	cases := map[string]struct {
		urls []string
		want string // empty: no error
	}{
		"the only one knows it":           {[]string{known}, ""},
		"only the second knows it":        {[]string{first, known}, ""},
		"nobody knows it":                 {[]string{first, second}, ""},
		"one has ended it, one is down":   {[]string{down, known}, ""},
		"one is down and may know it":     {[]string{first, down}, "connection refused"},
		"one does not answer":             {[]string{hung, first}, "no complete answer within " + patience.String()},
		"one fails":                       {[]string{failing, first}, "500 Internal Server Error"},
		"a login page ends nothing":       {[]string{portal, first}, "200 OK with content"},
		"a proxy's 404 says nothing":      {[]string{lost}, "404 Not Found with content"},
		"a name without address knows it": {[]string{"http://unknown.test", first}, "no such host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := newClient(t, Options{URLs: tc.urls, Resolver: names{}.resolve, Timeout: patience}).Expire(t.Context(), silenceID(1))
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestExpireTakesIdsOnly(t *testing.T) {
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) })
	for _, id := range []string{"", "s1", "../silences"} {
		require.ErrorContains(t, newClient(t, Options{URLs: []string{url}}).Expire(t.Context(), id), "not the id of a silence")
	}
}

// TestARepairsSilenceIsDrydocksOwn: its author is Drydock, and it lasts from now until the engine's
// end time.
func TestARepairsSilenceIsDrydocksOwn(t *testing.T) {
	asked := make(chan []byte, 1)
	url := parts(t, nil, map[string]http.HandlerFunc{"POST /silences": func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked <- body
		jsonly([]byte(`{"silenceID":"`+silenceID(1)+`"}`))(w, r)
	}})
	id, err := Repairs{newClient(t, Options{URLs: []string{url}})}.Silence(t.Context(), map[string]string{"node": "n1"}, time.Now().Add(time.Hour), "repair abc234")
	require.NoError(t, err)
	require.Equal(t, silenceID(1), id)
	body := string(<-asked)
	require.Contains(t, body, `"createdBy":"drydock"`)
	require.Contains(t, body, `"comment":"repair abc234"`)
}
