package kit_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// TestWhatARefusalSaysToTheEngine: what the refusal concerns, whether the attempt is given back,
// and when the engine asks again.
func TestWhatARefusalSaysToTheEngine(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		is                              kit.Refusal
		account, later, passing, unable bool
		fleetwide, unreached            bool
		again                           time.Duration
	}{
		"this machine":                   {is: kit.Refusal{Why: kit.Machine}, again: remediations.AskMended},
		"it never can":                   {is: kit.Refusal{Why: kit.Unable}, unable: true, again: remediations.AskMended},
		"this machine, for a while":      {is: kit.Refusal{Why: kit.While}, later: true, again: remediations.AskPassing},
		"its controller does not answer": {is: kit.Refusal{Why: kit.Unreached}, later: true, passing: true, unreached: true, again: remediations.AskPassing},
		"nor before a person acts":       {is: kit.Refusal{Why: kit.Unreached, NeedsPerson: true}, later: true, unreached: true, again: remediations.AskMended},
		"it asks to be left alone":       {is: kit.Refusal{Why: kit.Unreached, Again: time.Minute}, later: true, unreached: true, again: time.Minute},
		"all, for a moment":              {is: kit.Refusal{Why: kit.Passing}, later: true, passing: true, fleetwide: true, unreached: true, again: remediations.AskPassing},
		"all, for two minutes":           {is: kit.Refusal{Why: kit.Passing, Again: 2 * time.Minute}, later: true, fleetwide: true, unreached: true, again: 2 * time.Minute},
		"the configuration":              {is: kit.Refusal{Why: kit.Setup}, fleetwide: true, again: remediations.AskMended},
		"the account":                    {is: kit.Refusal{Why: kit.Account}, account: true, fleetwide: true, again: remediations.AskMended},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.is
			e.Text, e.Cause = "no", cause
			require.EqualError(t, &e, "no")
			require.ErrorIs(t, &e, cause)
			require.Equal(t, []bool{c.account, c.later, c.passing, c.unable}, []bool{
				errors.Is(&e, engine.ErrAccount), errors.Is(&e, engine.ErrLater), errors.Is(&e, engine.ErrPassing), errors.Is(&e, engine.ErrUnable),
			})
			require.Equal(t, remediations.Survey{Trouble: "no", Fleetwide: c.fleetwide, Unreached: c.unreached, Again: c.again}, e.Survey())
		})
	}
}

// TestRetryAfter: only seconds are accepted, up to a maximum.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 0, "90": 90 * time.Second, "0": 0, "-3": 0, "1.5": 0, "Wed, 21 Oct 2026 07:28:00 GMT": 0, "99999999999": remediations.AskMended, "9223372036854775808": 0,
	} {
		require.Equal(t, want, kit.RetryAfter(http.Header{"Retry-After": {header}}), header)
	}
}
