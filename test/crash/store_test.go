package crash

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// TestEtcdGoesBackUnderARunningDrydock restores a copy of etcd's data from before a call. The same
// process then holds each disruptive step, reports that in the ledger and in a metric, and makes no
// attempt twice. The test has its own lab, because a restore affects every Node. Without the
// restore, the second node is repaired without a hold.
func TestEtcdGoesBackUnderARunningDrydock(t *testing.T) {
	for _, restored := range []bool{true, false} {
		t.Run(map[bool]string{true: "restored", false: "the control"}[restored], func(t *testing.T) {
			l := lab.New(t, lab.Options{Components: lab.APIServerOnly, Alertmanagers: 1})
			y := newYard(t, prepare(t, l), options{nodes: 2, attempts: 2, steady: true})
			y.start()
			y.sees()
			y.annotate(0, remediations.PauseKey, "true")
			y.fail(0)
			y.await("a repair that is paused", func(v *view) bool {
				r := v.record(y.nodes[0])
				return r != nil && r.Hold != nil && r.Hold.Reason == remediations.ReasonPaused
			})
			restore, err := l.CopyEtcd(t.Context())
			require.NoError(t, err)
			y.annotate(0, remediations.PauseKey, "")
			y.ended(0)
			require.Len(t, y.provider.calls(y.nodes[0]), 1)

			if !restored {
				y.fail(1)
				y.ended(1)
				y.sound()
				return
			}
			require.NoError(t, restore(t.Context()))
			require.Eventually(t, func() bool {
				l, err := y.readLedger(t.Context())
				return err == nil && l.Status.WentBack != nil
			}, lab.Patience, 100*time.Millisecond, "the hold is in the ledger")
			require.Contains(t, y.metrics(0), "\n"+`drydock_blind{cause="store"} 1`+"\n")
			y.annotate(0, remediations.PauseKey, "")
			y.fail(0)
			y.fail(1)
			for _, node := range y.nodes {
				held := fmt.Sprintf("\ndrydock_node_hold{node=%q,policy=\"node-not-ready\",reason=\"StoreWentBack\"} 1\n", node)
				require.Eventually(t, func() bool { return strings.Contains(y.metrics(0), held) }, lab.Patience, 100*time.Millisecond, node)
			}
			require.Len(t, y.provider.calls(y.nodes[0]), 1, "no second call for the node whose attempt is not on record")
			require.Empty(t, y.provider.calls(y.nodes[1]))
			require.Zero(t, y.replicas[0].deaths.Load(), "it is the same process")
			y.sound()
		})
	}
}

// metrics returns the current metrics of the replica.
func (y *yard) metrics(replica int) string {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, y.replicas[replica].MetricsURL, http.NoBody)
	require.NoError(y.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	var body strings.Builder
	_, err = io.Copy(&body, res.Body)
	require.NoError(y.t, err)
	return body.String()
}
