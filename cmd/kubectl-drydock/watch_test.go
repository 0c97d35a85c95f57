package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

const within = 2 * time.Minute

// watching runs a command that continues until stop, which returns the exit code. It returns when
// both watches are open.
func (d *desk) watching(args ...string) (stop func() int) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan int, 1)
	go func() { ended <- d.plugin.execute(ctx, args) }()
	stop = func() int { cancel(); return <-ended }
	d.t.Cleanup(cancel)
	require.Eventually(d.t, func() bool {
		watches := 0
		for _, a := range d.cluster.Actions() {
			if a.GetVerb() == "watch" {
				watches++
			}
		}
		return watches >= 2
	}, within, time.Millisecond)
	return stop
}

func (d *desk) put(n *corev1.Node) {
	d.t.Helper()
	_, err := d.cluster.CoreV1().Nodes().Update(d.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(d.t, err)
}

func (d *desk) putLedger(l *ledger.Ledger) {
	d.t.Helper()
	_, err := d.cluster.CoreV1().ConfigMaps("drydock").Update(d.t.Context(), ledgerOf(l), metav1.UpdateOptions{})
	require.NoError(d.t, err)
}

func (d *desk) sees(text string) {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return strings.Contains(d.out.String(), text) }, within, time.Millisecond, "%q is not in what was printed", text)
}

func TestWatchPrintsWhatChanges(t *testing.T) {
	calm := calmLedger()
	d := newDesk(t, ledgerOf(calm), node("node-1", nil), node("node-2", nil), node("node-10", nil))
	stop := d.watching("status", "-w", "-o", "wide")
	d.sees("TIME")

	d.put(under("node-1", record("aaaaaa", remediations.PhaseActing)))
	d.sees("Acting")
	taken := calm.Clone()
	taken.Slots = []ledger.Slot{{Node: "node-1", Repair: "aaaaaa", Zone: "fra1"}}
	taken.Status.Breakers = map[string]ledger.Breaker{"zone/fra1": {State: ledger.BreakerOpen, Since: now, Unhealthy: 3, Nodes: 4, Quiet: now}}
	d.putLedger(taken)
	d.sees("zone/fra1 open")
	d.put(under("node-1", record("aaaaaa", remediations.PhaseVerifying)))
	d.sees("Verifying")
	d.put(under("node-10", record("bbbbbb", remediations.PhasePending, held(remediations.ReasonSilenced, "silenced by alice", time.Time{}))))
	d.sees("silenced by alice")

	quiet := taken.Clone()
	b := quiet.Status.Breakers["zone/fra1"]
	b.Quiet = now.Add(time.Minute) // changes with every poll, and is not news
	quiet.Status.Breakers = map[string]ledger.Breaker{"zone/fra1": b}
	d.putLedger(quiet)
	d.put(node("node-1", map[string]string{remediations.HistoryKey: historyOf(t, remediations.Entry{ID: "aaaaaa", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Why: "it is well"})}))
	d.sees("Recovered")
	d.putLedger(calm)
	d.sees("Breaker: zone/fra1 closed\n")
	require.NoError(t, d.cluster.CoreV1().Nodes().Delete(t.Context(), "node-10", metav1.DeleteOptions{}))
	d.sees("the Node itself is gone")

	require.Equal(t, cli.ExitOK, stop(), "an interrupt is how it ends")
	require.Empty(t, d.err.String())
	golden(t, "watch", d.out.String())
}

// TestWatchDoesNotReportAWaitingAlertAsGone: an alert that becomes a repair is still there.
func TestWatchDoesNotReportAWaitingAlertAsGone(t *testing.T) {
	firing := alerted("node-1", "node-not-ready")
	repaired := under("node-1", record("aaaaaa", remediations.PhasePending, held(remediations.ReasonSilenced, "silenced by alice", time.Time{})))
	maps.Copy(repaired.Annotations, firing.Annotations)
	d := newDesk(t, ledgerOf(calmLedger()), node("node-1", nil))
	stop := d.watching("status", "-w", "-o", "wide")
	d.sees("TIME")
	d.put(firing)
	d.sees("node-not-ready")
	d.put(repaired)
	d.sees("silenced by alice")
	require.NotContains(t, d.out.String(), "Gone")
	d.put(firing)
	d.sees("Gone") // the control: this repair is no longer there
	require.Equal(t, cli.ExitOK, stop())
}

func TestWatchInJSONIsOneWholeStatusAChange(t *testing.T) {
	d := newDesk(t, ledgerOf(calmLedger()), node("node-1", nil))
	stop := d.watching("status", "-w", "-o", "json")
	d.sees(`"repairs": []`)
	d.put(under("node-1", record("aaaaaa", remediations.PhaseActing)))
	d.sees("aaaaaa")
	require.Equal(t, cli.ExitOK, stop())
	var seen []inspect.Status
	for dec := json.NewDecoder(strings.NewReader(d.out.String())); ; {
		var s inspect.Status
		err := dec.Decode(&s)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		seen = append(seen, s)
	}
	require.Len(t, seen, 2)
	require.Empty(t, seen[0].Repairs)
	require.Equal(t, remediations.PhaseActing, seen[1].Repairs[0].Record.Phase)
}

func TestWatchOutlivesAnAPIServerThatIsAway(t *testing.T) {
	d := newDesk(t, ledgerOf(calmLedger()), node("node-1", nil))
	var away atomic.Bool
	d.cluster.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, apierrors.NewServiceUnavailable("restarting")
	})
	stop := d.watching("status", "-w")
	away.Store(true)
	d.put(under("node-1", record("aaaaaa", remediations.PhaseActing)))
	require.Eventually(t, func() bool { return strings.Contains(d.err.String(), "cannot be read: ") }, within, time.Millisecond)
	away.Store(false)
	d.put(under("node-1", record("aaaaaa", remediations.PhaseVerifying)))
	d.sees("Verifying")
	require.Equal(t, cli.ExitOK, stop())
	require.Equal(t, "21:05:00Z the status cannot be read: listing the nodes failed: restarting; trying again\n21:05:00Z the status can be read again\n", d.err.String())
}

func TestWithoutTheRightToWatchStatusSaysHowOftenItReads(t *testing.T) {
	d := newDesk(t, ledgerOf(calmLedger()), node("node-1", nil))
	d.cluster.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, apierrors.NewForbidden(nodesResource, "", errNotYours("watch configmaps"))
	})
	stop := d.watching("status", "-w")
	d.put(under("node-1", record("aaaaaa", remediations.PhaseActing)))
	d.sees("Acting")
	require.Equal(t, cli.ExitOK, stop())
	require.Contains(t, d.err.String(), "you may not watch these objects, so they are read every 15s: ")
}

func TestWatchRefusesWhereNoDrydockIs(t *testing.T) {
	code, _, stderr := newDesk(t).run("status", "-w")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, "error: no Drydock was found")
}
