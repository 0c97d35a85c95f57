package civo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// everyText returns all texts that an error or a value could put into a log or an Event.
func everyText(values ...any) string {
	var all strings.Builder
	for _, v := range values {
		fmt.Fprintf(&all, "%v %+v %#v\n", v, v, v)
		err, _ := v.(error)
		for ; err != nil; err = errors.Unwrap(err) {
			fmt.Fprintf(&all, "%v %+v %#v\n", err, err, err)
		}
	}
	return all.String()
}

// tattling answers every request, with the key in each part of the answer.
func tattling(key string) map[string]civosim.Fault {
	refusal := func(code string) map[string]any {
		return map[string]any{"result": "failed", "code": code, "reason": "bearer " + key, "details": strings.Repeat("x", 250) + key}
	}
	instance := func(id, hostname string) map[string]any {
		return map[string]any{"id": id, "hostname": hostname, "status": key + " DELETING"}
	}
	return map[string]civosim.Fault{
		"fine":         {},
		"page 200":     civosim.HTML(200),
		"page 401":     civosim.HTML(401),
		"page 502":     civosim.HTML(502),
		"panic":        civosim.Answer(400, map[string]any{"reason": map[string]any{"k": key}}),
		"unknown code": civosim.Answer(400, refusal("code-"+key)),
		"auth":         civosim.Answer(401, refusal("authentication_failed")),
		"quota":        civosim.Answer(403, refusal("quota_limit_reached")),
		"cluster":      civosim.Answer(404, refusal("database_kubernetes_cluster_not_found")),
		"region":       civosim.Answer(404, refusal("database_region_not_found")),
		"instance":     civosim.Answer(404, refusal("database_instance_find")),
		"500":          civosim.Answer(500, refusal(key)),
		"200 failed":   civosim.Answer(200, refusal(key)),
		"text":         civosim.Answer(200, key),
		"text 400":     civosim.Answer(400, key),
		"hostname":     civosim.Answer(200, []any{instance("i-1", strings.Repeat("h", 190)+key)}),
		"status":       civosim.Answer(200, []any{instance("i-1", "node-1")}),
		"IDs":          civosim.Answer(200, []any{instance("i-1", "node-1"), instance(key, "node-1")}),
		"pool":         civosim.Answer(200, []any{map[string]any{"id": key, "count": 1, "instances": []any{instance("i-1", "node-1")}}}),
		"hang":         civosim.Hang(),
		"cut":          civosim.Cut(),
		"redirect":     civosim.Redirect(),
		"too long":     civosim.Oversize(maxAnswer + 1),
	}
}

// TestTheKeyIsInNoText: after every fault at every point, no error, value or late answer shows the
// key in any spelling, however the other side repeats it.
func TestTheKeyIsInNoText(t *testing.T) {
	t.Parallel()
	path := keyFile(t, "x")
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.StringMatching(`[!-~]{16,48}`).Draw(r, "key")
		require.NoError(r, os.WriteFile(path, []byte(key), 0o600))
		sim, err := civosim.New(civosim.Options{
			ClusterID: clusterID, Region: region, APIKey: key, Instances: []civosim.Instance{{ID: "i-1", Hostname: "node-1"}},
		})
		require.NoError(r, err)
		defer sim.Close()
		faults := tattling(key)
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(faults))).Draw(r, "fault")
		op := rapid.SampledFrom([]civosim.Op{civosim.ListInstances, civosim.ListPools, civosim.HardReboots, civosim.SoftReboots, civosim.Recycle}).Draw(r, "at")
		if faults[name].String() != "" {
			sim.Inject(op, faults[name])
		}
		late := make(chan error, 1)
		of := section(r, sim.URL(), path)
		of.Timeout = 200 * time.Millisecond
		c, err := New(Options{
			Civo: of, Backoff: time.Millisecond, Late: func(_ engine.Machine, _ remediations.CallOutcome, err error) { late <- err },
		})
		require.NoError(r, err)
		operation := rapid.SampledFrom(slices.Sorted(maps.Keys(operations))).Draw(r, "operation")
		texts := []any{operations[operation](t.Context(), c)}
		seen, err := c.Look(t.Context(), node1)
		texts = append(texts, seen.PoolCount, err)
		progress, err := c.Replaced(t.Context(), before)
		texts = append(texts, progress.Missing, err)
		select {
		case err := <-late:
			texts = append(texts, err)
		default:
		}
		said := everyText(texts...)
		inJSON, err := json.Marshal(key)
		require.NoError(r, err)
		for _, form := range []string{key, strings.Trim(string(inJSON), `"`), html.EscapeString(key), url.QueryEscape(key)} {
			require.NotContains(r, said, form)
		}
		require.NotContains(r, said, key[:len(key)-1], "nor most of it")
	})
}

// TestTheKeyIsNotInWhatATransportQuotes: Go's own errors quote the first line of an answer that is
// not HTTP.
func TestTheKeyIsNotInWhatATransportQuotes(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			req, err := http.ReadRequest(bufio.NewReader(connection))
			if err == nil {
				_, _ = fmt.Fprintf(connection, "%s, you say\r\n\r\n", req.Header.Get("Authorization"))
			}
			_ = connection.Close()
		}
	}()
	c := client(t, "http://"+listener.Addr().String())
	for name, call := range operations {
		err := call(t.Context(), c)
		require.Error(t, err, name)
		require.ErrorContains(t, err, "[API key]", name)
		require.NotContains(t, everyText(err), apiKey, name)
	}
}

// TestTheKeyAsAName: the other side may use the key, or a text that ends in the middle of it, as a
// machine's name.
func TestTheKeyAsAName(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	named := func(id, hostname string) civosim.Fault {
		return civosim.Answer(200, []any{map[string]any{"id": id, "hostname": hostname, "status": active}})
	}
	sim.InjectNext(civosim.ListInstances, 1, named(apiKey, "node-1"))
	err := c.Reboot(t.Context(), engine.Machine{Node: "node-1"}, nil)
	require.ErrorContains(t, err, "(instance [API key])")
	require.NotContains(t, everyText(err), apiKey)

	sim.InjectNext(civosim.ListInstances, 1, named("i-1", strings.Repeat("h", 190)+apiKey))
	err = c.Reboot(t.Context(), node1, nil)
	requireRefused(t, err, reasonAmbiguous)
	require.NotContains(t, everyText(err), apiKey[:9], "nor a part of it")
}
