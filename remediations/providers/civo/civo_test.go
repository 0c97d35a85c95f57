package civo

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/civo/settings"
)

const (
	clusterID = "9c89d8b9-463d-45f2-8928-455eb3f3726a"
	region    = "LON1"
	apiKey    = "correct-horse-battery-staple"
)

var node1 = engine.Machine{Node: "node-1", ProviderID: "civo://i-1"}

func provider(t testing.TB, adjust ...func(*civosim.Options)) *civosim.Server {
	t.Helper()
	o := civosim.Options{
		ClusterID: clusterID, Region: region, OtherRegions: []string{"FRA1"}, APIKey: apiKey,
		Instances: []civosim.Instance{{ID: "i-1", Hostname: "node-1"}, {ID: "i-10", Hostname: "node-10"}},
	}
	for _, f := range adjust {
		f(&o)
	}
	sim, err := civosim.New(o)
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	return sim
}

func keyFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "civo-api-key")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// section is the section of the configuration for the cluster of the tests.
func section(t require.TestingT, at, key string) settings.Civo {
	u, err := url.Parse(at)
	require.NoError(t, err)
	return settings.Civo{APIURL: u, ClusterID: clusterID, Region: region, APIKeyFile: key, Timeout: 2 * time.Minute}
}

func client(t testing.TB, url string, adjust ...func(*Options)) *Client {
	t.Helper()
	o := Options{
		Civo: section(t, url, keyFile(t, "  "+apiKey+"\n")), IssueWithin: 2 * time.Minute, Backoff: time.Millisecond, UserAgentVersion: "test",
	}
	for _, f := range adjust {
		f(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// rebooted requests a reboot with a short time limit, and again with a longer one if a busy machine
// used the time up before the request left.
func rebooted(t *testing.T, c *Client, sim *civosim.Server) error {
	t.Helper()
	c.o.Timeout = 5 * time.Second
	err := c.Reboot(t.Context(), node1, nil)
	for errors.As(err, new(*refusedError)) && len(sim.CallsTo(civosim.HardReboots)) == 0 && c.o.Timeout < time.Minute {
		c.o.Timeout *= 3
		err = c.Reboot(t.Context(), node1, nil)
	}
	return err
}

// patient gives the client enough time for an answer on a busy machine, after all calls have ended.
func patient(t *testing.T, c *Client) {
	t.Helper()
	require.NoError(t, c.takeTurn(t.Context(), task{}), "it is given back when the call is over")
	c.o.Timeout, c.o.IssueWithin = 2*time.Minute, 2*time.Minute
	c.giveTurn()
}

func requireRefused(t *testing.T, err error, why reason, texts ...string) {
	t.Helper()
	var refused *refusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, why, refused.Reason, err)
	require.ErrorContains(t, err, "nothing was done")
	requireText(t, err, texts...)
}

func requireUnknown(t *testing.T, err error, texts ...string) {
	t.Helper()
	var unknown *unknownError
	require.ErrorAs(t, err, &unknown)
	require.ErrorContains(t, err, "the call may have been done")
	requireText(t, err, texts...)
}

// requireText also asserts what holds for every error of this package.
func requireText(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
	require.LessOrEqual(t, len(err.Error()), 1000)
	require.NotContains(t, err.Error(), "\n")
	for ; err != nil; err = errors.Unwrap(err) {
		require.NotContains(t, err.Error(), apiKey)
	}
}

func TestRebootIsOneHardRebootOfThatInstance(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]engine.Machine{
		"by provider ID": node1,
		"by hostname":    {Node: "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			c := client(t, sim.URL()+"/")
			require.NoError(t, c.Reboot(t.Context(), m, nil))
			require.Equal(t, "civo", c.Name())

			calls := sim.Calls()
			require.Len(t, calls, 2, "the list, then the reboot")
			require.Equal(t, civosim.ListInstances, calls[0].Op)
			reboot := calls[1]
			require.Equal(t, "/v2/instances/i-1/hard_reboots", reboot.Path)
			require.Equal(t, "hard reboot i-1", reboot.Done)
			require.JSONEq(t, `{"region":"LON1"}`, reboot.Body)
			require.Equal(t, region, reboot.Query.Get("region"))
			require.True(t, strings.HasPrefix(reboot.UserAgent, "drydock/test civogo/"), reboot.UserAgent)
		})
	}
}

func TestFindLooksAndTouchesNothing(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	in, err := client(t, sim.URL()).Find(t.Context(), engine.Machine{Node: "node-10"})
	require.NoError(t, err)
	require.Equal(t, []string{"i-10", "node-10", "ACTIVE"}, []string{in.ID, in.Hostname, in.Status})
	require.False(t, in.CreatedAt.IsZero())
	require.Empty(t, sim.Done(civosim.Any))
}

func TestOnlyTheMachineOfTheNodeIsRebooted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		machine engine.Machine
		fault   civosim.Fault
		why     reason
		text    string
		noCall  bool
	}{
		"hostname gone, a longer one there": {
			machine: engine.Machine{Node: "node-1"}, fault: civosim.Missing("node-1"), why: reasonNotFound, text: "exactly that hostname",
		},
		"ID gone, hostname of another": {
			machine: engine.Machine{Node: "node-10", ProviderID: "civo://i-9"}, why: reasonNotFound, text: "no instance of that ID",
		},
		"ID gone, a longer one there": {
			machine: node1, fault: civosim.Missing("node-1"), why: reasonNotFound, text: "(instance i-1)",
		},
		"part of an ID": {
			machine: engine.Machine{Node: "node-1", ProviderID: "civo://i-"}, why: reasonNotFound, text: "no instance of that ID",
		},
		"two of one hostname": {
			machine: engine.Machine{Node: "node-1"}, fault: civosim.Twice("node-1"), why: reasonAmbiguous, text: "2 instances have it: i-1, ",
		},
		"ID of another host": {
			machine: engine.Machine{Node: "node-1", ProviderID: "civo://i-10"}, why: reasonAmbiguous, text: `another host's instance, "node-10"`,
		},
		"another provider": {
			machine: engine.Machine{Node: "node-1", ProviderID: "aws:///i-1"}, why: reasonNotFound, text: `"aws:///i-1" is not of the form civo://`, noCall: true,
		},
		"ID that is a path": {
			machine: engine.Machine{Node: "node-1", ProviderID: "civo://i-10/hard_reboots?"}, why: reasonNotFound, noCall: true,
		},
		"empty ID":    {machine: engine.Machine{Node: "node-1", ProviderID: "civo://"}, why: reasonNotFound, noCall: true},
		"no name":     {machine: engine.Machine{ProviderID: "civo://i-1"}, why: reasonNotFound, noCall: true},
		"null list":   {machine: node1, fault: civosim.Answer(200, nil), why: reasonNotFound},
		"no own ID":   {machine: engine.Machine{Node: "n"}, fault: civosim.Answer(200, []any{map[string]any{"hostname": "n"}}), why: reasonBadAnswer},
		"evil own ID": {machine: engine.Machine{Node: "n"}, fault: civosim.Answer(200, []any{map[string]any{"hostname": "n", "id": "../i-1"}}), why: reasonBadAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			if tc.fault.String() != "" {
				sim.Inject(civosim.ListInstances, tc.fault)
			}
			err := client(t, sim.URL()).Reboot(t.Context(), tc.machine, nil)
			requireRefused(t, err, tc.why, `rebooting node "`+tc.machine.Node+`"`, tc.text)
			require.Empty(t, sim.CallsTo(civosim.HardReboots))
			require.Equal(t, tc.noCall, len(sim.Calls()) == 0)
		})
	}
}

func TestOfTwoOfOneHostnameTheProviderIDPicksOne(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	sim.Inject(civosim.ListInstances, civosim.Twice("node-1"))
	require.NoError(t, client(t, sim.URL()).Reboot(t.Context(), node1, nil))
	require.Equal(t, "hard reboot i-1", sim.Done(civosim.HardReboots)[0].Done)
}

// TestNewNamesWhatIsWrongWithTheKey: the configuration checks all other settings.
func TestNewNamesWhatIsWrongWithTheKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		adjust func(*Options)
		text   string
	}{
		"missing file": {func(o *Options) { o.APIKeyFile = "/nowhere/key" }, "/nowhere/key"},
		"empty file":   {func(o *Options) { o.APIKeyFile = keyFile(t, "\n") }, "civo-api-key: the file is empty"},
		"two words":    {func(o *Options) { o.APIKeyFile = keyFile(t, apiKey+"\n"+apiKey) }, "more than one word"},
		"long file":    {func(o *Options) { o.APIKeyFile = keyFile(t, strings.Repeat(apiKey, 1000)) }, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Civo: section(t, "https://host", keyFile(t, apiKey))}
			tc.adjust(&o)
			_, err := New(o)
			require.ErrorContains(t, err, "configuring Civo")
			requireText(t, err, tc.text)
		})
	}
}

func TestTheKeyIsReadAgain(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	path := keyFile(t, "old")
	c := client(t, sim.URL(), func(o *Options) { o.APIKeyFile = path })
	requireRefused(t, c.Reboot(t.Context(), node1, nil), reasonUnauthorized, "put a valid API key into "+path)
	require.NoError(t, os.WriteFile(path, []byte(apiKey), 0o600))
	require.NoError(t, c.Reboot(t.Context(), node1, nil))

	require.NoError(t, os.Remove(path))
	calls := len(sim.Calls())
	err := c.Reboot(t.Context(), node1, nil)
	requireRefused(t, err, reasonUnauthorized, path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Len(t, sim.Calls(), calls)
}

// over is a context that has ended.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
