package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drydock.dev/drydock/internal/lab"
	"github.com/stretchr/testify/require"
)

// This is the control of every test that asserts that nothing is recorded: a page does everything
// that a hostile text could make a page do, and all of it is recorded.
func TestTheBrowserNoticesWhatAHostilePageDoes(t *testing.T) {
	const elsewhere = "http://127.0.0.2:9"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "script-src 'unsafe-inline'; style-src 'none'")
		fmt.Fprintf(w, `<!doctype html><title>hostile</title><img src="%s/image" alt="">
<script>alert("opened"); console.error("said"); fetch("%[1]s/fetched").catch(() => {}); throw new Error("thrown")</script><style>p { color: red }</style>`, elsewhere)
	}))
	t.Cleanup(server.Close)
	page := tab(t)
	require.NoError(t, page.Open(t.Context(), server.URL))
	require.NoError(t, page.Await(t.Context(), `document.readyState === "complete"`))
	require.Eventually(t, func() bool {
		said := strings.Join(page.Complaints(), "\n")
		for _, want := range []string{"dialog: opened", `console error: "said"`, "exception: ", "issue: ContentSecurityPolicyIssue"} {
			if !strings.Contains(said, want) {
				return false
			}
		}
		return len(page.Elsewhere(server.URL)) == 2
	}, lab.Patience, pause, "%s", page.Complaints())
	require.ElementsMatch(t, []string{elsewhere + "/image", elsewhere + "/fetched"}, page.Elsewhere(server.URL))
}
