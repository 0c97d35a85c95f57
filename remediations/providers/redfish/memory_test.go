package redfish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/providers/redfish/sim"
)

// TestABMCTakesNoMoreMemoryThanIsPromised, whatever it answers. All allocations together are
// bounded, and the collector frees most of them in between. The test is not parallel: the count is
// the whole program's.
func TestABMCTakesNoMoreMemoryThanIsPromised(t *testing.T) {
	const promised, garbage = 64 << 20, 2
	members := func(n int) string {
		all := make([]map[string]any, n)
		for i := range all {
			all[i] = map[string]any{"@odata.id": fmt.Sprintf("/redfish/v1/Systems/%d", i)}
		}
		text, err := json.Marshal(map[string]any{"@odata.id": "/redfish/v1/Systems", "Members": all})
		require.NoError(t, err)
		return string(text)
	}
	many := func(n int, one string) string { return strings.Repeat(one+",", n-1) + one }
	system := func(more string) string {
		return `{"@odata.id":"/redfish/v1/Systems/1","Id":"1","UUID":"x",` + more + `}`
	}
	for name, c := range map[string]struct{ list, system, says string }{
		"as many systems as are asked, each as large as is read": {members(maxRequests - 3), system(`"TrustedModules":[` + many(3900, `{}`) + `]`), "systems, but not the node's machine"},
		"long systems":                        {members(maxRequests - 3), system(`"Oem":"` + strings.Repeat("x", 900<<10) + `"`), "rejects the BMC's answer"},
		"a collection of 25,000 members":      {`{"Members":[` + many(25_000, `{"@odata.id":"/redfish/v1/Systems/1"}`) + `]}`, system(`"a":1`), "rejects the BMC's answer"},
		"a collection of one member too many": {members(maxRequests + 1), system(`"a":1`), "takes more than"},
		"a system with lists without end":     {members(1), system(`"TrustedModules":[` + many(300_000, `{}`) + `]`), "rejects the BMC's answer"},
	} {
		t.Run(name, func(t *testing.T) {
			side := sim.New(sim.Options{Username: user, Password: password, Vendor: sim.Standard, Systems: []sim.System{system1}})
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/redfish/v1/Systems":
					_, _ = w.Write([]byte(c.list))
				case strings.HasPrefix(r.URL.Path, "/redfish/v1/Systems/"):
					_, _ = w.Write([]byte(c.system))
				default:
					side.ServeHTTP(w, r)
				}
			}))
			r := rebooter(t, bmcOf(t, "node-1", url, Basic))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			said := r.Survey(t.Context(), machine1)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(promised*garbage))
			require.Contains(t, said.Trouble, c.says)
		})
	}
}
