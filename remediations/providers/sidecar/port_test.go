package sidecar

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// TestTheEngineReceivesTheResultOfAnApproval: refused only if nothing was posted or the sidecar
// refused; after any other error it may have been done.
func TestTheEngineReceivesTheResultOfAnApproval(t *testing.T) {
	withheld := errors.New("paused")
	for name, tc := range map[string]struct {
		provider string
		may      error
		instead  func(http.ResponseWriter, *http.Request) bool
		outcome  remediations.CallOutcome
		posts    int
		later    bool
	}{
		"approved":                {provider: "sei", outcome: remediations.CallAccepted, posts: 1},
		"a provider without name": {provider: "nobody", outcome: remediations.CallRefused},
		"withheld":                {provider: "sei", may: withheld, outcome: remediations.CallRefused, later: true},
		"it answers 401":          {provider: "sei", instead: answering(http.StatusUnauthorized), outcome: remediations.CallRefused, posts: 1, later: true},
		"it answers 400":          {provider: "sei", instead: answering(http.StatusBadRequest), outcome: remediations.CallRefused, posts: 1},
		"it fails while it is at it": {
			provider: "sei", outcome: remediations.CallUnknown, posts: 1,
			instead: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet {
					return false
				}
				w.WriteHeader(http.StatusInternalServerError)
				return true
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t)
			s.g.instead = tc.instead
			clients := Clients{"sei": s.Client}
			a := asking()
			a.Provider = tc.provider
			saw := clients.Look(t.Context(), tc.provider, a.Pod)
			require.Equal(t, tc.provider != "sei", saw.Unknown != "", saw.Unknown)
			if tc.provider == "sei" {
				require.Equal(t, kind.HealthNotReady, saw.Health)
				require.Equal(t, theNode, saw.Node)
				require.NotEmpty(t, saw.Owner.Name)
			}
			outcome, err := clients.Approve(t.Context(), a, func() error { return tc.may })
			require.Equal(t, tc.outcome, outcome, "%v", err)
			require.Equal(t, outcome == remediations.CallAccepted, err == nil)
			require.Equal(t, tc.may != nil, errors.Is(err, withheld))
			require.Equal(t, tc.later, errors.Is(err, engine.ErrLater), "whether the attempt is given back")
			require.NotErrorIs(t, err, engine.ErrAccount, "one pod's answer")
			require.Len(t, s.g.Posts(), tc.posts)
		})
	}
}

// answering answers each post with the status.
func answering(status int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			return false
		}
		w.WriteHeader(status)
		return true
	}
}
