package civo

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/lab/civosim"
)

// TestFaultsOfTheLookup: after any fault before the write, nothing was done.
func TestFaultsOfTheLookup(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault civosim.Fault
		why   reason
		is    error
		text  string
		short bool // needs a short Timeout
		tries int  // 0: one
	}{
		"hang":                {fault: civosim.Hang(), why: reasonUnreachable, text: "does not answer", short: true},
		"server error":        {fault: civosim.ServerError(), why: reasonUnavailable, is: civogo.InternalServerError, text: "HTTP 500", tries: 3},
		"unauthorized":        {fault: civosim.Unauthorized(), why: reasonUnauthorized, is: civogo.AuthenticationError, text: "civo-api-key"},
		"key of nobody":       {fault: civosim.Answer(404, map[string]any{"code": "database_account_not_found", "reason": "x"}), why: reasonUnauthorized},
		"forbidden":           {fault: civosim.Answer(403, map[string]any{"code": "new_code", "reason": "x"}), why: reasonUnauthorized},
		"quota":               {fault: civosim.Quota(), why: reasonQuota, is: civogo.QuotaLimitReachedError},
		"cut":                 {fault: civosim.Cut(), why: reasonUnreachable, tries: 3},
		"page":                {fault: civosim.HTML(http.StatusOK), why: reasonBadAnswer},
		"page with a 403":     {fault: civosim.HTML(http.StatusForbidden), why: reasonBadAnswer, text: "[API key]"},
		"page with a 401":     {fault: civosim.HTML(http.StatusUnauthorized), why: reasonUnauthorized},
		"object, not a list":  {fault: civosim.Failed(), why: reasonBadAnswer},
		"panic of a decoder":  {fault: civosim.PanicReason(400), why: reasonBadAnswer, text: "civogo panicked"},
		"too long":            {fault: civosim.Oversize(maxAnswer + 1), why: reasonBadAnswer, is: bounded.ErrTooLarge},
		"redirect":            {fault: civosim.Redirect(), why: reasonBadAnswer, text: "HTTP 307"},
		"rate limit":          {fault: civosim.Answer(429, map[string]any{"code": "slow_down", "reason": "x"}), why: reasonUnavailable, text: "HTTP 429", tries: 3},
		"request timeout":     {fault: civosim.Answer(408, map[string]any{"code": "timeout", "reason": "x"}), why: reasonUnavailable, text: "HTTP 408", tries: 3},
		"page with a 502":     {fault: civosim.HTML(http.StatusBadGateway), why: reasonUnavailable, text: "an HTML page with HTTP 502", tries: 3},
		"region not in order": {fault: civosim.Answer(400, map[string]any{"code": "region_unavailable", "reason": "x"}), why: reasonWrongRegion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := provider(t)
			sim.Inject(civosim.ListInstances, tc.fault)
			c := client(t, sim.URL())
			if tc.short {
				c.o.Timeout = 5 * time.Second
			}
			err := c.Reboot(t.Context(), node1, nil)
			requireRefused(t, err, tc.why, `rebooting node "node-1"`, tc.text)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			require.Len(t, sim.CallsTo(civosim.ListInstances), max(tc.tries, 1), "only what may pass is asked again")
			require.Empty(t, sim.CallsTo(civosim.HardReboots))

			sim.Heal()
			c.o.Timeout = 2 * time.Minute
			require.NoError(t, c.Reboot(t.Context(), node1, nil), "it works again at once")
		})
	}
}

// TestFaultsOfTheWrite: refused only if it is certain that nothing was done.
func TestFaultsOfTheWrite(t *testing.T) {
	t.Parallel()
	const unknown reason = ""
	for name, tc := range map[string]struct {
		fault civosim.Fault
		why   reason // empty: an unknownError
		is    error
		text  string
		done  int // what really happened at the provider
		short bool
	}{
		"unauthorized":           {fault: civosim.Unauthorized(), why: reasonUnauthorized, is: civogo.AuthenticationError},
		"quota":                  {fault: civosim.Quota(), why: reasonQuota, is: civogo.QuotaLimitReachedError, text: "raise the account's quota"},
		"instance just deleted":  {fault: civosim.Answer(404, map[string]any{"code": "database_instance_find", "reason": "x"}), why: reasonNotFound},
		"state does not allow":   {fault: civosim.Answer(409, map[string]any{"code": "instance_state_must_be_active_or_shutoff", "reason": "building"}), why: reasonRejected, text: "building"},
		"200 and failed":         {fault: civosim.Failed(), why: reasonRejected, text: "Failed to reboot the instance"},
		"200 and quota":          {fault: civosim.Answer(200, map[string]any{"result": "failed", "code": "quota_limit_reached"}), why: reasonQuota},
		"200 and no result":      {fault: civosim.After(civosim.Answer(200, map[string]any{})), why: unknown, done: 1, text: "has no result"},
		"200 and null":           {fault: civosim.After(civosim.Answer(200, nil)), why: unknown, done: 1},
		"500":                    {fault: civosim.ServerError(), why: unknown, is: civogo.InternalServerError, text: "HTTP 500"},
		"500 after the work":     {fault: civosim.After(civosim.ServerError()), why: unknown, done: 1},
		"408 after the work":     {fault: civosim.After(civosim.Answer(408, map[string]any{"code": "timeout", "reason": "x"})), why: unknown, done: 1, text: "HTTP 408"},
		"cut":                    {fault: civosim.Cut(), why: unknown, text: "the request was sent"},
		"cut after the work":     {fault: civosim.After(civosim.Cut()), why: unknown, done: 1},
		"hang":                   {fault: civosim.Hang(), why: unknown, text: "no answer came in time", short: true},
		"hang after the work":    {fault: civosim.After(civosim.Hang()), why: unknown, done: 1, short: true},
		"page with a 200":        {fault: civosim.After(civosim.HTML(200)), why: unknown, done: 1, text: "cannot be read"},
		"page with a 403":        {fault: civosim.HTML(403), why: unknown, text: "[API key]"},
		"page with a 502":        {fault: civosim.After(civosim.HTML(502)), why: unknown, done: 1},
		"panic of a decoder":     {fault: civosim.After(civosim.PanicReason(400)), why: unknown, done: 1, text: "civogo panicked"},
		"200, reason a number":   {fault: civosim.After(civosim.PanicReason(200)), why: unknown, done: 1},
		"too long":               {fault: civosim.After(civosim.Oversize(maxAnswer + 1)), why: unknown, is: bounded.ErrTooLarge, done: 1},
		"redirect, not repeated": {fault: civosim.After(civosim.Redirect()), why: unknown, done: 1, text: "HTTP 307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := provider(t)
			sim.InjectNext(civosim.HardReboots, 1, tc.fault)
			c := client(t, sim.URL())
			reboot := func() error { return c.Reboot(t.Context(), node1, nil) }
			if tc.short {
				reboot = func() error { return rebooted(t, c, sim) }
			}
			err := reboot()
			if tc.why == unknown {
				requireUnknown(t, err, `rebooting node "node-1" (instance i-1)`, tc.text)
			} else {
				requireRefused(t, err, tc.why, `rebooting node "node-1" (instance i-1)`, tc.text)
			}
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			require.Len(t, sim.CallsTo(civosim.HardReboots), 1, "one request, never a second")
			require.Len(t, sim.Done(civosim.HardReboots), tc.done)

			patient(t, c)
			require.NoError(t, c.Reboot(t.Context(), node1, nil), "a fault does not outlive its call")
		})
	}
}

// closedPort is an address without a listener. A port that was found free could be in use a moment
// later.
const closedPort = "http://127.0.0.1:1"

func TestConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	err := client(t, closedPort).Reboot(t.Context(), node1, nil)
	requireRefused(t, err, reasonUnreachable, "connection refused", "check the network")
}

// TestProviderGoneBetweenLookupAndWrite: a refused connection does not count as a lost one.
func TestProviderGoneBetweenLookupAndWrite(t *testing.T) {
	t.Parallel()
	var api *httptest.Server
	api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = api.Listener.Close()
		_, _ = w.Write([]byte(`[{"id":"i-1","hostname":"node-1"}]`))
	}))
	defer api.Close()
	err := client(t, api.URL).Reboot(t.Context(), node1, nil)
	requireRefused(t, err, reasonUnreachable, "(instance i-1)", "the request did not reach Civo", "connection refused")
}

func TestErrorsAreOfTwoKinds(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	require.ErrorIs(t, &refusedError{Err: cause}, cause)
	require.ErrorIs(t, &unknownError{Err: cause}, cause)
	for why, r := range reasons {
		c := &Client{o: Options{Civo: section(t, "https://host", "/key")}}
		require.NotContains(t, c.refuse(task{}, why, nil, "x").Error(), "{", why)
		require.NotEmpty(t, r.concern, why)
	}
}
