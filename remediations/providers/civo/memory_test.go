package civo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/engine"
)

// TestAnAnswerTakesNoMoreMemoryThanIsPromised: all allocations together are bounded, and the
// collector frees most of them in between. The test is not parallel: the count is the whole
// program's.
func TestAnAnswerTakesNoMoreMemoryThanIsPromised(t *testing.T) {
	const promised, garbage = 64 << 20, 2
	list := func(n int, entry func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = entry(i)
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	// A real entry has about 1.5 kB.
	real := func(i int) string {
		text, err := json.Marshal(map[string]any{
			"id": fmt.Sprintf("i-%d", i), "hostname": fmt.Sprintf("node-%d", i), "status": "ACTIVE", "script": strings.Repeat("x", 1200),
			"tags": []string{"a", "b"}, "attached_volumes": []any{map[string]any{"id": "v"}}, "placement_rule": map[string]any{}, "cpu_cores": 8, "ram_mb": 32768,
		})
		require.NoError(t, err)
		return string(text)
	}
	for name, c := range map[string]struct {
		body    string
		refused bool
	}{
		"5,000 real machines":              {body: list(5000, real)},
		"as many empty ones as are read":   {body: list(answers.Objects, func(int) string { return "{}" })},
		"2 MB of empty ones":               {body: list(700_000, func(int) string { return "{}" }), refused: true},
		"one with tags without end":        {body: list(1, func(int) string { return `{"tags":[` + strings.Repeat(`"",`, 700_000) + `""]}` }), refused: true},
		"nested without end":               {body: list(1, func(int) string { return strings.Repeat("[", 100_000) }), refused: true},
		"an error with fields without end": {body: `{"code":"x"` + strings.Repeat(`,"y":{}`, 300_000) + "}", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.body)) }))
			t.Cleanup(server.Close)
			client := client(t, server.URL)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client.Find(t.Context(), engine.Machine{Node: "node-1"})
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(promised*garbage))
			if c.refused {
				require.ErrorIs(t, err, bounded.ErrTooLarge)
				requireRefused(t, err, reasonBadAnswer)
			} else if err != nil {
				requireRefused(t, err, reasonNotFound)
			}
		})
	}
}
