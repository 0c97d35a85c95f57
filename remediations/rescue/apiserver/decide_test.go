package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

func rescueOf(g scene.Golden, t testing.TB) *State {
	t.Helper()
	text, err := os.ReadFile(g.Input)
	require.NoError(t, err)
	return readRescue(t, text).state(t)
}

// TestDecideAPIServerGoldens compares every kind of decision about the API servers with its golden
// file. It also decodes the entries that a decision writes.
func TestDecideAPIServerGoldens(t *testing.T) {
	scene.Pin(t, "decide", rescueOf, Decide, renderRescue, func(t *testing.T, _ *State, d Decision) {
		for _, e := range d.Write {
			again, err := DecodeRescueEntry(e.Encode())
			require.NoError(t, err, e.Encode())
			require.Equal(t, e.Encode(), again.Encode())
		}
	})
}

// TestEveryOutputHasAnInput: an output whose input was renamed tests nothing.
func TestEveryOutputHasAnInput(t *testing.T) {
	outputs, err := filepath.Glob("testdata/decide/*.output.yaml")
	require.NoError(t, err)
	require.Len(t, outputs, len(scene.Goldens(t)))
}

// rescueOrder is the order of a rescue's guards.
var rescueOrder = []remediations.Reason{
	remediations.ReasonPaused, remediations.ReasonAlertUnconfirmed, remediations.ReasonSilenced, remediations.ReasonInhibited, remediations.ReasonAlertResolved, remediations.ReasonTooYoung, remediations.ReasonOutsideWindow, remediations.ReasonCooldown, remediations.ReasonRepairsSpent, remediations.ReasonObserving,
}

// TestEachGuardOfARescueSpeaksBeforeThoseBehindIt removes the causes one after the other, as for a
// node.
func TestEachGuardOfARescueSpeaksBeforeThoseBehindIt(t *testing.T) {
	sc := readRescue(t, []byte(`
policy: {mode: observe, for: 30m}
windows: ["02:00-04:00"]
limits: {repairsPerNode: 1}
hosts: [cp-1]
paused: "true"
ended: [{id: old, policy: apiserver-down, outcome: Recovered, steps: [], began: "<now-4m>", ended: "<now-1m>", hosts: [{host: cp-1, attempt: old-1, at: "<now-3m>", outcome: accepted}]}]
word: {replicas: [{alert: silenced, err: "down"}, {alert: inhibited, err: "down"}]}
`))
	remedies := map[remediations.Reason]func(){
		remediations.ReasonPaused:           func() { sc.Paused = nil },
		remediations.ReasonAlertUnconfirmed: func() { sc.Word.Replicas[0].Err, sc.Word.Replicas[1].Err = "", "" },
		remediations.ReasonSilenced:         func() { sc.Word.Replicas[0].Alert = "active" },
		remediations.ReasonInhibited:        func() { sc.Word.Replicas[1].Alert = "active" },
		remediations.ReasonTooYoung:         func() { sc.Policy.For = "1m" },
		remediations.ReasonOutsideWindow:    func() { sc.Windows = nil },
		remediations.ReasonCooldown:         func() { sc.Policy.Cooldown = "30s" },
		remediations.ReasonRepairsSpent:     func() { sc.Limits.RepairsPerNode = 2 },
		remediations.ReasonObserving:        func() { sc.Policy.Mode = remediations.ModeEnforce },
	}
	// If no Alertmanager answers, only a post shows the alert.
	sc.Posted = []scene.Alert{{}}
	for _, want := range rescueOrder {
		if want == remediations.ReasonAlertResolved {
			continue // an alert cannot have ended and fire: held-AlertResolved covers that
		}
		d := Decide(sc.state(t), scene.Noon)
		require.Equal(t, lifecycle.VerbHold, d.Verb, "%s: %s", want, d.Message)
		require.Equal(t, want, d.Reason, d.Message)
		remedies[want]()
	}
	require.Equal(t, lifecycle.VerbIssue, Decide(sc.state(t), scene.Noon).Verb, "with every cause gone it is done")
}

// TestNoGuardOfARescueIsIdle removes each guard in turn. Without a guard that binds a rescue, its
// golden must change. Without any other guard, no golden may change.
func TestNoGuardOfARescueIsIdle(t *testing.T) {
	t.Parallel()
	bind := map[remediations.Reason]bool{}
	goldens := scene.Goldens(t)
	states, wanted := make([]*State, len(goldens)), make([]string, len(goldens))
	for i, g := range goldens { // read once: a decision changes nothing in them
		text, err := os.ReadFile(g.Input)
		require.NoError(t, err)
		states[i], wanted[i] = readRescue(t, text).state(t), g.Want(t)
	}
	for i, gone := range lifecycle.Guards() {
		var changed []string
		for j, g := range goldens {
			states[j].Guards = slices.Delete(lifecycle.Guards(), i, i+1)
			if renderRescue(t, Decide(states[j], scene.Noon)) != wanted[j] {
				changed = append(changed, g.Name)
			}
		}
		if !slices.Contains(rescueOrder, gone.Reason) {
			require.Empty(t, changed, gone.Reason)
		} else if len(changed) > 0 {
			require.Contains(t, changed, "held-"+string(gone.Reason))
			bind[gone.Reason] = true
		}
	}
	for _, reason := range rescueOrder {
		require.True(t, bind[reason], "no golden needs %s", reason)
	}
}

// TestLastLookBeforeTheRestart: a change by people or in the journal just before the restart
// prevents the restart.
func TestLastLookBeforeTheRestart(t *testing.T) {
	r := &Rescue{ID: "r1", Phase: remediations.PhaseActing, Hosts: []HostTry{{Host: "cp-1", Attempt: "r1-1"}}}
	said := func(text string) *string { return &text }
	require.NoError(t, MayStillRescue(RescueJournal{Rescue: r}, "r1-1", scene.Noon))
	require.NoError(t, MayStillRescue(RescueJournal{Rescue: r, Paused: said("2026-03-04T11:00:00Z")}, "r1-1", scene.Noon), "that pause is over")
	for name, j := range map[string]RescueJournal{
		"it cannot be read":   {Rescue: r, Malformed: errors.New("nonsense")},
		"nothing is on it":    {},
		"it went on":          {Rescue: &Rescue{Phase: remediations.PhaseVerifying, Hosts: r.Hosts}},
		"another attempt":     {Rescue: &Rescue{Phase: remediations.PhaseActing, Hosts: []HostTry{{Host: "cp-1", Attempt: "r1-2"}}}},
		"somebody paused it":  {Rescue: r, Paused: said("")},
		"paused until later":  {Rescue: r, Paused: said("2026-03-04T13:00:00Z maintenance")},
		"paused in own words": {Rescue: r, Paused: said("we move the racks")},
	} {
		require.Error(t, MayStillRescue(j, "r1-1", scene.Noon), name)
	}
}

type slow struct{}

func (slow) Error() string { return "slow" }
func (slow) Timeout() bool { return true }

// TestUnknownIsNeverFailing: an answer that does not certainly show a failed API server gives
// HostUnknown.
func TestUnknownIsNeverFailing(t *testing.T) {
	for status, want := range map[int]HostState{
		200: HostReady, 500: HostFailing, 503: HostFailing, 401: HostUnknown, 403: HostUnknown, 404: HostUnknown, 429: HostUnknown, 302: HostUnknown, 201: HostUnknown, 600: HostUnknown, 0: HostUnknown,
	} {
		require.Equal(t, want, SightOf("cp-1", status, nil, scene.Noon).State, status)
	}
	for _, err := range []error{slow{}, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, io.EOF, io.ErrUnexpectedEOF} {
		require.Equal(t, HostFailing, SightOf("cp-1", 0, fmt.Errorf("asking: %w", err), scene.Noon).State, err)
	}
	for _, err := range []error{errors.New("x509: certificate signed by unknown authority"), syscall.ENETUNREACH, io.ErrClosedPipe, &net.DNSError{IsNotFound: true}} {
		require.Equal(t, HostUnknown, SightOf("cp-1", 0, err, scene.Noon).State, err)
	}
}

// TestRealAnswersOfAHost queries real listeners. A certificate that cannot be verified gives
// HostUnknown, and a closed port gives HostFailing.
func TestRealAnswersOfAHost(t *testing.T) {
	patience := 10 * time.Second
	ask := func(url string) HostSight {
		resp, err := (&http.Client{Timeout: patience}).Get(url)
		if err != nil {
			return SightOf("cp-1", 0, err, scene.Noon)
		}
		defer resp.Body.Close()
		return SightOf("cp-1", resp.StatusCode, nil, scene.Noon)
	}
	hang := make(chan struct{})
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hangs" {
			<-hang
		}
	}))
	require.Equal(t, HostReady, ask(open.URL).State)
	patience = 50 * time.Millisecond
	require.Equal(t, HostFailing, ask(open.URL+"/hangs").State)
	patience = 10 * time.Second
	close(hang)
	open.Close()
	require.Equal(t, HostFailing, ask(open.URL).State)
	unknown := httptest.NewTLSServer(http.NotFoundHandler())
	defer unknown.Close()
	sight := ask(unknown.URL)
	require.Equal(t, HostUnknown, sight.State)
	require.Contains(t, sight.Why, "certificate")
}

// TestRescueHasTenMinutesWhereNoPlanSays: the timeout of the policy's plan replaces the ten
// minutes.
func TestRescueHasTenMinutesWhereNoPlanSays(t *testing.T) {
	require.Equal(t, RescueFor, rescueFor(&remediations.Policy{Plan: []remediations.Step{{Name: "restart-kubelet"}}}))
	require.Equal(t, time.Minute, rescueFor(&remediations.Policy{Plan: []remediations.Step{{Name: "restart-kubelet", Timeout: time.Minute}}}))
}
