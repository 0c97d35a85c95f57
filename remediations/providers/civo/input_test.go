package civo

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations/providers/kit"
)

// before is Look's result for node1 in the provider's first state.
var before = Before{InstanceID: "i-1", Hostname: "node-1", PoolID: "pool-1", PoolCount: 2}

// operations are all operations of a caller.
var operations = map[string]func(context.Context, *Client) error{
	"find":        func(ctx context.Context, c *Client) error { _, err := c.Find(ctx, node1); return err },
	"reboot":      func(ctx context.Context, c *Client) error { return c.Reboot(ctx, node1, nil) },
	"soft reboot": func(ctx context.Context, c *Client) error { return c.SoftReboot(ctx, node1, nil) },
	"look":        func(ctx context.Context, c *Client) error { _, err := c.Look(ctx, node1); return err },
	"recycle":     func(ctx context.Context, c *Client) error { return c.Recycle(ctx, node1, before, nil) },
	"replaced":    func(ctx context.Context, c *Client) error { _, err := c.Replaced(ctx, before); return err },
}

// TestEachBadInputHasItsOwnError: for every call, the sentence says which of the mistakes it is,
// and the refusal what it concerns.
func TestEachBadInputHasItsOwnError(t *testing.T) {
	t.Parallel()
	const silence = 3 * time.Second
	fault := func(f civosim.Fault) func(*testing.T, *civosim.Server, *Options) {
		return func(_ *testing.T, s *civosim.Server, _ *Options) { s.Inject(civosim.ListInstances, f) }
	}
	for name, tc := range map[string]struct {
		wrong   func(*testing.T, *civosim.Server, *Options)
		why     reason
		concern kit.Concern
		texts   []string
		but     []string // operations that do not depend on the mistake
	}{
		"unknown cluster": {
			wrong: func(_ *testing.T, _ *civosim.Server, o *Options) { o.ClusterID = "other" },
			why:   reasonUnknownCluster, concern: kit.Setup,
			texts: []string{"unknown cluster, or wrong region: Civo has no cluster other in region LON1", "check clusterID other and region LON1"},
		},
		"region of other clusters": {
			wrong: func(_ *testing.T, _ *civosim.Server, o *Options) { o.Region = "FRA1" },
			why:   reasonUnknownCluster, concern: kit.Setup,
			texts: []string{"unknown cluster, or wrong region: Civo has no cluster " + clusterID + " in region FRA1"},
		},
		"no such region": {
			wrong: func(_ *testing.T, _ *civosim.Server, o *Options) { o.Region = "XYZ1" },
			why:   reasonWrongRegion, concern: kit.Setup, texts: []string{"wrong region: Civo has no region XYZ1", "check region XYZ1"},
		},
		"instance no longer exists": {
			wrong: fault(civosim.Missing("node-1")), why: reasonNotFound, concern: kit.Machine,
			texts: []string{"the instance no longer exists: cluster " + clusterID + " has no instance of that ID"}, but: []string{"replaced"},
		},
		"two instances of one name": {
			wrong: fault(civosim.Twice("node-1")), why: reasonAmbiguous, concern: kit.Machine,
			texts: []string{"the hostname is not unique: 2 instances have it: i-1, "},
			but:   []string{"find", "reboot", "soft reboot", "replaced"}, // they use the ID
		},
		"HTML": {
			wrong: fault(civosim.HTML(200)), why: reasonBadAnswer, concern: kit.Setup,
			texts: []string{"is not Civo's API: an HTML page with HTTP 200", "check that apiURL is Civo's API"},
		},
		"silence": {
			wrong: func(_ *testing.T, s *civosim.Server, o *Options) {
				s.Inject(civosim.Any, civosim.Hang())
				o.Timeout = silence
			},
			why: reasonUnreachable, concern: kit.Passing, texts: []string{"the network does not answer: nothing came from Civo at 127.0.0.1"},
		},
		"nobody there": {
			wrong: func(t *testing.T, _ *civosim.Server, o *Options) { o.APIURL = section(t, closedPort, "").APIURL },
			why:   reasonUnreachable, concern: kit.Passing, texts: []string{"the network does not answer", "connection refused"},
		},
		"Civo is down": {
			wrong: fault(civosim.HTML(503)), why: reasonUnavailable, concern: kit.Passing,
			texts: []string{"Civo's API cannot answer now: an HTML page with HTTP 503"},
		},
		"key refused": {wrong: fault(civosim.Unauthorized()), why: reasonUnauthorized, concern: kit.Account, texts: []string{"Civo refuses the API key with HTTP 401"}},
		"no key": {
			wrong: func(t *testing.T, _ *civosim.Server, o *Options) { o.APIKeyFile = t.TempDir() + "/gone" },
			why:   reasonUnauthorized, concern: kit.Account, texts: []string{"there is no API key", "/gone"},
		},
		"quota": {wrong: fault(civosim.Quota()), why: reasonQuota, concern: kit.Account, texts: []string{"the account's quota at Civo is reached"}},
	} {
		for operation, call := range operations {
			t.Run(name+"/"+operation, func(t *testing.T) {
				t.Parallel()
				sim := provider(t)
				o := client(t, sim.URL()).o
				tc.wrong(t, sim, &o)
				file := o.APIKeyFile
				o.APIKeyFile = keyFile(t, apiKey)
				c, err := New(o)
				require.NoError(t, err)
				c.o.APIKeyFile = file // the file may be missing now

				err = call(t.Context(), c)
				var account *accountError
				if slices.Contains(tc.but, operation) {
					require.NoError(t, err)
					return
				}
				requireRefused(t, err, tc.why, tc.texts...)
				require.Equal(t, tc.concern, tc.why.Concern())
				require.Equal(t, tc.concern == kit.Account, errors.As(err, &account), "only the account stops the policy")
				require.Empty(t, sim.Done(civosim.Any))
			})
		}
	}
}

func TestAnAccountErrorOfTheWriteItself(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]civosim.Fault{
		"key withdrawn since": civosim.Unauthorized(), "quota": civosim.Quota(),
		"quota with a 200": civosim.Answer(200, map[string]any{"result": "failed", "code": "quota_limit_reached"}),
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			sim.Inject(civosim.Recycle, f)
			err := client(t, sim.URL()).Recycle(t.Context(), node1, before, nil)
			var account *accountError
			require.ErrorAs(t, err, &account)
			require.ErrorContains(t, err, "nothing was done")
			require.Len(t, sim.CallsTo(civosim.Recycle), 1)
		})
	}
}
