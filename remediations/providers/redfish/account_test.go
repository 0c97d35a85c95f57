package redfish

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// failing is a BMC that answers the first matching requests, as many as times, with the error. It
// answers all others by the standard.
func failing(t *testing.T, times int64, status int, id string, match func(*http.Request) bool) (*sim.BMC, string) {
	t.Helper()
	side, _ := begin(t, sim.Options{Vendor: sim.IDRAC})
	var left atomic.Int64
	left.Store(times)
	return side, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if match(r) && left.Add(-1) >= 0 {
			sim.Fail(w, status, id, "no")
			return
		}
		side.ServeHTTP(w, r)
	}))
}

func reads(r *http.Request) bool  { return r.Method == http.MethodGet }
func resets(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "Reset") }

// TestOneRefusalOfOneBMCIsNothing: some BMCs occasionally answer 401 to good credentials. It
// concerns no other BMC, the attempt is given back, and the next survey succeeds.
func TestOneRefusalOfOneBMCIsNothing(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]func(*http.Request) bool{"a look": reads, "the reset": resets} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			side, one := failing(t, 1, 401, "Base.1.0.NoValidSession", match)
			other, two := begin(t, sim.Options{Systems: []sim.System{system2}})
			r := rebooter(t, bmcOf(t, "node-1", one, Basic), bmcOf(t, "node-2", two, Basic))
			outcome, err := r.Act(t.Context(), machine1, yes)
			require.Equal(t, remediations.CallRefused, outcome)
			require.NotErrorIs(t, err, engine.ErrAccount)
			require.ErrorIs(t, err, engine.ErrLater)
			require.ErrorContains(t, err, "if the BMC does not accept basic authentication, set auth to session")
			require.Empty(t, r.Survey(t.Context(), machine2).Trouble, "the other BMC of that account")
			outcome, err = r.Act(t.Context(), machine2, yes)
			require.NoError(t, err)
			require.Equal(t, remediations.CallAccepted, outcome)
			require.Len(t, other.Resets(), 1)
			requireReset(t, r, side, machine1, "ForceRestart")
		})
	}
}

// TestRefusalsNowAndThenDoNotAddUp: between them the BMC accepts the credentials.
func TestRefusalsNowAndThenDoNotAddUp(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	side, url := failing(t, 1000, 401, "Base.1.0.NoValidSession", func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/Systems") && looks.Add(1)%2 == 1
	})
	r := rebooter(t, bmcOf(t, "node-1", url, Basic))
	for range 4 {
		require.Contains(t, r.Survey(t.Context(), machine1).Trouble, "tries this BMC once more")
		require.Empty(t, r.Survey(t.Context(), machine1).Trouble)
	}
	require.Empty(t, side.Resets())
}

// TestABMCThatRefusesTwiceIsLeftAlone, so that the account is not locked. It concerns that BMC
// until a second one refuses the same credentials.
func TestABMCThatRefusesTwiceIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, auth := range []Auth{Basic, Session} {
		t.Run(string(auth), func(t *testing.T) {
			t.Parallel()
			side, one := begin(t, sim.Options{})
			other, two := begin(t, sim.Options{Systems: []sim.System{system2}})
			bmcs := []BMC{bmcOf(t, "node-1", one, auth), bmcOf(t, "node-2", two, auth)}
			bmcs[1].UsernameFile, bmcs[1].PasswordFile = bmcs[0].UsernameFile, bmcs[0].PasswordFile
			r := rebooter(t, bmcs...)
			change := func(b *sim.BMC, to string) { b.Change(func(o *sim.Options) { o.Password = to }) }
			change(side, "another")
			for range 5 {
				said := r.Survey(t.Context(), machine1)
				require.Contains(t, said.Trouble, "refuse")
				require.True(t, said.Unreached)
				require.False(t, said.Fleetwide)
				_, err := r.Act(t.Context(), machine1, yes)
				require.NotErrorIs(t, err, engine.ErrAccount)
			}
			_, _, refused := side.Sessions()
			require.Equal(t, timesRefused, refused)
			require.Empty(t, r.Survey(t.Context(), machine2).Trouble)

			change(other, "another")
			require.NotEmpty(t, r.Survey(t.Context(), machine2).Trouble)
			for _, m := range []engine.Machine{machine1, machine2} {
				said := r.Survey(t.Context(), m)
				require.Contains(t, said.Trouble, `the BMCs of nodes "node-1" and "node-2" refused the same credentials`)
				require.True(t, said.Fleetwide, "all BMCs have these credentials")
				_, err := r.Act(t.Context(), m, yes)
				require.ErrorIs(t, err, engine.ErrAccount)
			}
			_, _, refused = other.Sessions()
			require.Equal(t, 1, refused)

			require.NoError(t, os.WriteFile(bmcs[0].PasswordFile, []byte("another"), 0o600))
			requireReset(t, r, side, machine1, "ForceRestart")

			change(side, password)
			require.NoError(t, os.WriteFile(bmcs[0].PasswordFile, []byte(password), 0o600))
			require.Contains(t, r.Survey(t.Context(), machine1).Trouble, "refused the same credentials")
			r.o.TryAgain = time.Nanosecond
			require.Empty(t, r.Survey(t.Context(), machine1).Trouble, "the time is over")
		})
	}
}

// TestAnAccountThatMayOnlyLook: the BMC refuses the reset. That concerns this BMC and uses no
// attempt, and the survey reports it from then on.
func TestAnAccountThatMayOnlyLook(t *testing.T) {
	t.Parallel()
	side, url := begin(t, sim.Options{ReadOnly: true})
	_, two := begin(t, sim.Options{Systems: []sim.System{system2}})
	r := rebooter(t, bmcOf(t, "node-1", url, Basic), bmcOf(t, "node-2", two, Basic))
	require.Empty(t, r.Survey(t.Context(), machine1).Trouble, "which cannot be seen beforehand")
	for range timesRefused { // a single refusal may be a mistake of the BMC
		require.Empty(t, r.Survey(t.Context(), machine1).Trouble)
		outcome, err := r.Act(t.Context(), machine1, yes)
		require.Equal(t, remediations.CallRefused, outcome)
		require.NotErrorIs(t, err, engine.ErrAccount)
		require.ErrorIs(t, err, engine.ErrLater)
		require.ErrorContains(t, err, "give the account")
	}
	said := r.Survey(t.Context(), machine1)
	require.Contains(t, said.Trouble, "the role Operator on this BMC")
	require.False(t, said.Fleetwide)
	require.Empty(t, r.Survey(t.Context(), machine2).Trouble)
	require.Empty(t, side.Resets())
}

// TestASessionLimitDoesNotBlockTheAccount, whatever the status of the answer.
func TestASessionLimitDoesNotBlockTheAccount(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 503} {
		side, url := failing(t, 3, status, "Base.1.12.SessionLimitExceeded", func(r *http.Request) bool { return r.Method == http.MethodPost && !resets(r) })
		r := rebooter(t, bmcOf(t, "node-1", url, Session))
		for range 3 {
			said := r.Survey(t.Context(), machine1)
			require.Contains(t, said.Trouble, "the BMC has no free session", status)
			require.Equal(t, remediations.AskPassing, said.Again)
			require.False(t, said.Fleetwide)
		}
		requireReset(t, r, side, machine1, "ForceRestart")
	}
}

// TestASessionWithoutAPlace: the session's address is taken from the body. If the BMC gives none,
// Drydock opens no further session.
func TestASessionWithoutAPlace(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]bool{"the body has it": true, "nothing has it": false} {
		side, _ := begin(t, sim.Options{})
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			side.ServeHTTP(without{w, r.Method == http.MethodPost && !resets(r), body}, r)
		}))
		r := rebooter(t, bmcOf(t, "node-1", url, Session))
		if body {
			requireReset(t, r, side, machine1, "ForceRestart")
			open, _, _ := side.Sessions()
			require.Zero(t, open, name)
			continue
		}
		for range 4 {
			require.Contains(t, r.Survey(t.Context(), machine1).Trouble, "set auth to basic")
		}
		_, made, _ := side.Sessions()
		require.Equal(t, 1, made, name)
	}
}

// without removes the address of a new session from its answer: from the header, and from the body
// if body is false.
type without struct {
	http.ResponseWriter
	session, body bool
}

func (w without) WriteHeader(status int) {
	if w.session {
		w.Header().Del("Location")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w without) Write(b []byte) (int, error) {
	if w.session && !w.body {
		_, err := w.ResponseWriter.Write([]byte(`{}`))
		return len(b), err
	}
	return w.ResponseWriter.Write(b)
}
