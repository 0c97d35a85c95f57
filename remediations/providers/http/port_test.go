package http

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

func yes() error { return nil }

// TestWhatEachAnswerMeans: a receiver that did nothing answers with one of seven statuses, in JSON,
// in plain text or without a body. After any other answer the action may have been done.
func TestWhatEachAnswerMeans(t *testing.T) {
	t.Parallel()
	const jsonType, plain, page = "application/json", "text/plain; charset=utf-8", "text/html"
	type c struct {
		status     int
		kind, body string
		want       remediations.CallOutcome
		says       string
		later      bool
		account    bool // the attempt is given back
	}
	for name, c := range map[string]c{
		"201":                      {status: 201, kind: jsonType, body: `{"job": 7, "message": ["x"]}`, want: remediations.CallAccepted},
		"204":                      {status: 204, want: remediations.CallAccepted},
		"200 in plain text":        {status: 200, kind: plain, body: "OK", want: remediations.CallAccepted},
		"200 of a proxy":           {status: 200, kind: page, body: "<html>please log in", want: remediations.CallUnknown, says: "is not from a receiver"},
		"200 and a list":           {status: 200, kind: jsonType, body: `[]`, want: remediations.CallUnknown},
		"400":                      {status: 400, kind: jsonType, body: `{"message": "no field rack"}`, want: remediations.CallRefused, says: `HTTP 400: it refuses the request: "no field rack"`},
		"401":                      {status: 401, want: remediations.CallRefused, says: "check signingKeyFile and httpConfig", account: true},
		"403":                      {status: 403, kind: plain, body: "not yours", want: remediations.CallRefused, says: `"not yours"`, account: true},
		"404":                      {status: 404, kind: jsonType, body: `{}`, want: remediations.CallRefused, says: "HTTP 404: it refuses the request"},
		"404 of a router":          {status: 404, kind: plain, body: "404 page not found", want: remediations.CallRefused, says: "check the url", later: true},
		"404 of a proxy":           {status: 404, kind: page, body: "<html>", want: remediations.CallUnknown},
		"409":                      {status: 409, kind: jsonType, body: `{"message": "in maintenance"}`, want: remediations.CallRefused, says: `it cannot do this now: "in maintenance"`, later: true},
		"422":                      {status: 422, want: remediations.CallRefused},
		"429":                      {status: 429, want: remediations.CallRefused, later: true},
		"405":                      {status: 405, kind: jsonType, body: `{"message": "x"}`, want: remediations.CallUnknown},
		"301":                      {status: 301, want: remediations.CallUnknown, says: "follows no redirect"},
		"500":                      {status: 500, kind: jsonType, body: `{"message": "the switch hangs"}`, want: remediations.CallUnknown, says: `"the switch hangs"`},
		"503 that asks for a wait": {status: 503, want: remediations.CallUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			outcome, err := Action{client(t, server.URL, time.Minute, observe), "reboot"}.Act(t.Context(), machine1, yes)
			require.Equal(t, c.want, outcome, "%v", err)
			require.Equal(t, 1, asked)
			if err == nil {
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.later, errors.Is(err, engine.ErrLater), "%v", err)
			require.Equal(t, c.account, errors.Is(err, engine.ErrAccount), "%v", err)
			require.Equal(t, outcome == remediations.CallRefused, strings.Contains(err.Error(), "nothing was done"), "%v", err)
		})
	}
}

// TestThrottlingIsHeeded: the receiver sets the wait, and a receiver that does not is called again
// after a while.
func TestThrottlingIsHeeded(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]time.Duration{"120": 2 * time.Minute, "": remediations.AskPassing, "Wed, 21 Oct 2026 07:28:00 GMT": remediations.AskPassing} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		defer server.Close()
		said := Action{client(t, server.URL, time.Minute), "reboot"}.Survey(t.Context(), machine1)
		require.NotEmpty(t, said.Trouble)
		require.Equal(t, want, said.Again, after)
		require.True(t, said.Unreached)
		require.True(t, said.Fleetwide, "one receiver serves all machines")
	}
}

// TestARequestProvesWhoAsks: its key is the attempt, which a receiver remembers. Its signature
// covers ID, time and body, with the bytes of the file as the key. A question has no key, and an ID
// of its own.
func TestARequestProvesWhoAsks(t *testing.T) {
	t.Parallel()
	r, c := receiving(t)
	before := time.Now().Unix()
	for range 2 {
		require.Empty(t, Action{c, "reboot"}.Survey(t.Context(), machine1).Trouble)
	}
	_, err := Action{c, "reboot"}.Act(t.Context(), machine1, yes)
	require.NoError(t, err)
	got := r.got()
	require.Len(t, got, 4)
	ids := map[string]bool{}
	for i, one := range got {
		id, stamp := one.header.Get("webhook-id"), one.header.Get("webhook-timestamp")
		ids[id] = true
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(id + "." + stamp + "." + string(one.body)))
		require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), one.header.Get("webhook-signature"))
		at, err := strconv.ParseInt(stamp, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, at, before)
		require.Equal(t, []string{"/observe", "/observe", "/observe", "/reboot"}[i], one.path)
		require.Equal(t, []string{"", "", "", machine1.Attempt}[i], one.header.Get("Idempotency-Key"))
	}
	require.Len(t, ids, 4)
	require.True(t, ids[machine1.Attempt])
}

// TestAKeyThatCannotBeReadSendsNothing, also if the file was removed while Drydock runs.
func TestAKeyThatCannotBeReadSendsNothing(t *testing.T) {
	t.Parallel()
	r, c := receiving(t, observe)
	c.SigningKeyFile += "-gone"
	outcome, err := Action{c, "reboot"}.Act(t.Context(), machine1, yes)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "reading the signing key")
	require.Empty(t, r.got())
	_, err = New(c.HTTP)
	require.ErrorContains(t, err, "reading the signing key", "nor does Drydock start so")
}

// TestTheReceiverSaysWhatMayBeAskedFor before the intent, and again before the request.
func TestTheReceiverSaysWhatMayBeAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   func(*receiver)
		says  string // empty: nothing forbids it
		again time.Duration
	}{
		"it can":           {set: func(*receiver) {}},
		"a job is done":    {set: func(r *receiver) { r.boxes[0].job = done }},
		"a job has failed": {set: func(r *receiver) { r.boxes[0].job = failed }},
		"a job is at work": {func(r *receiver) { r.boxes[0].job, r.boxes[0].attempt = working, "abcdef-0-0" }, `still working on this machine: "abcdef-0-0 step 3 of 5"`, remediations.AskPassing},
		"it cannot":        {func(r *receiver) { r.cannot["node-1"] = "no spare part" }, `cannot reboot this machine now: "no spare part"`, remediations.AskMended},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, client := receiving(t)
			c.set(r)
			said := Action{client, "reboot"}.Survey(t.Context(), machine1)
			require.Equal(t, c.says == "", said.Trouble == "", said.Trouble)
			require.Contains(t, said.Trouble, c.says)
			require.Equal(t, c.again, said.Again)
			outcome, err := Action{client, "reboot"}.Act(t.Context(), machine1, yes)
			require.Equal(t, c.says == "", outcome == remediations.CallAccepted, "%v", err)
			require.Equal(t, c.says == "", len(r.acted()) == 1)
		})
	}
}

// TestAnAnswerAboutAnotherMachineIsNotUsed: a cache, or a receiver that confuses machines, must not
// cause a reboot of a healthy machine.
func TestAnAnswerAboutAnotherMachineIsNotUsed(t *testing.T) {
	t.Parallel()
	for uid, want := range map[string]remediations.CallOutcome{"u-1": remediations.CallAccepted, "u-2": remediations.CallRefused} {
		acted := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/observe" {
				acted++
			}
			_, _ = io.WriteString(w, `{"uid": "`+uid+`", "can": ["reboot"], "machine": "off"}`)
		}))
		defer server.Close()
		a := Action{client(t, server.URL, time.Minute), "reboot"}
		outcome, err := a.Act(t.Context(), machine1, yes)
		require.Equal(t, want, outcome, "%v", err)
		require.Equal(t, want == remediations.CallAccepted, acted == 1)
		require.Equal(t, want == remediations.CallAccepted, a.Testify(t.Context(), machine1, signs.Sign{}).Answer == signs.Ill)
	}
}

// TestWhetherTheMachineRuns is the receiver's answer, and unknown if no observe address is
// configured.
func TestWhetherTheMachineRuns(t *testing.T) {
	t.Parallel()
	for machine, want := range map[string]signs.Answer{running: signs.Well, off: signs.Ill, gone: signs.Unknown, unknown: signs.Unknown} {
		r, c := receiving(t)
		r.boxes[0].machine = machine
		said := c.Testify(t.Context(), machine1, signs.Sign{})
		require.Equal(t, want, said.Answer, machine)
		require.Contains(t, said.Saw, machine)
	}
	r, c := receiving(t, observe)
	require.Equal(t, signs.Unknown, c.Testify(t.Context(), machine1, signs.Sign{}).Answer)
	require.Empty(t, r.got())
}

// TestAMachineWithoutProviderIDIsNotReplaced: nothing could prove that another one has come. It can
// be rebooted.
func TestAMachineWithoutProviderIDIsNotReplaced(t *testing.T) {
	t.Parallel()
	_, c := receiving(t)
	m := machine1
	m.ProviderID = ""
	require.Contains(t, NewReplacer(c).Survey(t.Context(), m).Trouble, "no spec.providerID")
	require.Empty(t, Action{c, "reboot"}.Survey(t.Context(), m).Trouble)
}

// TestAReplacementThatFailedSaysSo, and one whose job is still at work proves nothing, whatever
// else is there.
func TestAReplacementThatFailedSaysSo(t *testing.T) {
	t.Parallel()
	for job, blocked := range map[string]string{failed: `the receiver says that its job is failed: "step 3 of 5"`, working: "", done: ""} {
		r, c := receiving(t)
		replacer := NewReplacer(c)
		before := replacer.Survey(t.Context(), machine1).Before
		r.boxes[0].job, r.boxes[0].machine, r.boxes[0].successors = job, gone, []string{"rack://1", "", "rack://9"}
		said, err := replacer.Replaced(t.Context(), before)
		require.NoError(t, err)
		require.True(t, said.MachineGone)
		require.Equal(t, job == done, said.Missing == "", said.Missing)
		require.Equal(t, blocked, said.Blocked)
		require.Equal(t, []string{"rack://9"}, said.Successors, "no machine succeeds itself")
		r.boxes[0].machine = off
		said, err = replacer.Replaced(t.Context(), before)
		require.NoError(t, err)
		require.False(t, said.MachineGone, "its power may come back, and its volumes would have two writers")
	}
}

// TestADocumentIsBounded, though the Node's data about its machine is not.
func TestADocumentIsBounded(t *testing.T) {
	t.Parallel()
	r, c := receiving(t)
	m := machine1
	m.ProviderID = "rack://" + strings.Repeat("x", maxDocument)
	outcome, err := Action{c, "reboot"}.Act(t.Context(), m, yes)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "Drydock sends at most")
	require.Empty(t, r.got())
}

// TestATokenIsFetchedBeforeTheLastLook: the gate's last check does not let out the request for an
// OAuth 2 token but the action, and without a token nothing is sent.
func TestATokenIsFetchedBeforeTheLastLook(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]remediations.CallOutcome{200: remediations.CallAccepted, 401: remediations.CallRefused} {
		var fetched, looked, acted int
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/token" {
				fetched++
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"access_token": "a", "token_type": "Bearer"}`)
				return
			}
			acted++
		}))
		defer server.Close()
		o := client(t, server.URL, time.Minute, observe).HTTP
		o.HTTPConfig.Authorization = nil
		o.HTTPConfig.OAuth2 = &promconfig.OAuth2{ClientID: "drydock", ClientSecret: "of-the-client", TokenURL: server.URL + "/token"}
		c, err := New(o)
		require.NoError(t, err)
		outcome, err := Action{c, "reboot"}.Act(t.Context(), machine1, func() error {
			looked++
			require.Equal(t, 1, fetched)
			require.Zero(t, acted)
			return nil
		})
		require.Equal(t, want, outcome, "%v", err)
		good := map[bool]int{true: 1}[status == 200]
		require.Equal(t, []int{good, good}, []int{looked, acted})
	}
}
