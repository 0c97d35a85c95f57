package redfish

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// TestWhatTheAnswerToTheResetMeans: each good answer in the standard is accepted. Of the others,
// only the BMC's own report that it did nothing is a refusal.
func TestWhatTheAnswerToTheResetMeans(t *testing.T) {
	t.Parallel()
	own := sim.Error("Base.1.0.GeneralError", "no")
	for name, tc := range map[string]struct {
		status  int
		body    string
		header  string
		outcome remediations.CallOutcome
		later   bool
	}{
		"200 with a message":      {status: 200, body: own, outcome: remediations.CallAccepted},
		"200 without a body":      {status: 200, outcome: remediations.CallAccepted},
		"202 with a task":         {status: 202, body: `{"Id": "1"}`, header: "/redfish/v1/TaskService/TaskMonitors/1", outcome: remediations.CallAccepted},
		"202 without a place":     {status: 202, outcome: remediations.CallAccepted},
		"202 and a place of ours": {status: 202, header: "https://elsewhere.invalid/x", outcome: remediations.CallAccepted},
		"204":                     {status: 204, outcome: remediations.CallAccepted},
		"201":                     {status: 201, outcome: remediations.CallUnknown},
		"400":                     {status: 400, body: own, outcome: remediations.CallRefused},
		"401":                     {status: 401, body: own, outcome: remediations.CallRefused, later: true},
		"403":                     {status: 403, body: own, outcome: remediations.CallRefused, later: true},
		"400 while it starts":     {status: 400, body: sim.Error("iLO.2.14.ServerPOSTInProgress", "wait"), outcome: remediations.CallRefused, later: true},
		"503 while it starts":     {status: 503, body: sim.Error("iLO.2.14.ServerPOSTInProgress", "wait"), outcome: remediations.CallRefused, later: true},
		"503 of somebody else":    {status: 503, body: `{"message": "ServerPOSTInProgress"}`, outcome: remediations.CallUnknown},
		"400 without a session":   {status: 400, body: sim.Error("Base.1.12.SessionLimitExceeded", "full"), outcome: remediations.CallRefused, later: true},
		"428":                     {status: 428, body: own, outcome: remediations.CallRefused, later: true},
		"428 without a word":      {status: 428, outcome: remediations.CallUnknown},
		"308 to a slash":          {status: 308, header: "/redfish/v1/Systems/blade-1/Actions/ComputerSystem.Reset/", outcome: remediations.CallRefused, later: true},
		"308 to somewhere":        {status: 308, header: "/redfish/v1/Systems/blade-2/Actions/ComputerSystem.Reset/", outcome: remediations.CallUnknown},
		"308 to another host":     {status: 308, header: "https://elsewhere.invalid/redfish/v1/Systems/blade-1/Actions/ComputerSystem.Reset/", outcome: remediations.CallUnknown},
		"405":                     {status: 405, body: own, outcome: remediations.CallRefused},
		"412":                     {status: 412, body: own, outcome: remediations.CallRefused},
		"415":                     {status: 415, body: own, outcome: remediations.CallRefused},
		"501":                     {status: 501, body: own, outcome: remediations.CallRefused},
		"409 with the state":      {status: 409, body: sim.Error("IDRAC.2.8.PSU501", "already on"), outcome: remediations.CallRefused},
		"409 that says nothing":   {status: 409, body: `{"error": {}}`, outcome: remediations.CallUnknown},
		"400 without a word":      {status: 400, outcome: remediations.CallUnknown},
		"404 of somebody else":    {status: 404, body: `{"message": "no route"}`, outcome: remediations.CallUnknown},
		"408":                     {status: 408, body: own, outcome: remediations.CallUnknown},
		"503":                     {status: 503, body: own, outcome: remediations.CallUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			side, _ := begin(t, sim.Options{Vendor: sim.IDRAC})
			posts := 0
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/Actions/ComputerSystem.Reset") {
					side.ServeHTTP(w, r)
					return
				}
				posts++
				if tc.header != "" {
					w.Header().Set("Location", tc.header)
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			outcome, err := rebooter(t, bmcOf(t, "node-1", url, Basic)).Act(t.Context(), machine1, yes)
			require.Equal(t, tc.outcome, outcome, "%v", err)
			require.NotErrorIs(t, err, engine.ErrAccount, "one BMC's answer")
			require.Equal(t, tc.later, tc.outcome == remediations.CallRefused && errors.Is(err, engine.ErrLater), "%v", err)
			require.Equal(t, 1, posts)
		})
	}
}
