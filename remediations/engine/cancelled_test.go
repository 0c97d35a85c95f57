package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
)

// days makes days pass on one node without anything in between. It decides as often as something is
// written.
type days struct {
	t      *testing.T
	config *remediations.Config
	node   *corev1.Node
	now    time.Time
	word   alerts.Alert
	ids    int
	calls  int
}

func newDays(t *testing.T, about string) *days {
	w := newWorld(modelConfig(), 1)
	n := w.nodes["n0"]
	n.Status.Conditions[0].Status = gone
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(n.CreationTimestamp.Add(time.Hour))
	d := &days{t: t, config: w.config, node: n, now: n.CreationTimestamp.Add(2 * time.Hour)}
	d.word = alerts.Alert{Labels: labelsOf(about), StartsAt: d.now.Add(-time.Minute), Active: true, Receivers: []string{"drydock"}}
	a := d.config.NewAlert(d.config.Policies[0], d.word.Labels, remediations.StatusFiring, d.word.StartsAt, d.word.StartsAt)
	n.Annotations[a.Key()] = a.Encode()
	return d
}

// decide decides until there is nothing more to write.
func (d *days) decide() lifecycle.Decision {
	for range 5 {
		d.ids++
		s := &lifecycle.State{
			Config: d.config, Node: d.node, Journal: modelRegistry.ReadJournal(d.node), Ledger: &ledger.Ledger{}, LookSince: d.now, NewID: fmt.Sprintf("r%05d", d.ids),
			Heartbeats: &signs.Heartbeats{ReadAt: d.now, Nodes: 1}, Survey: &remediations.Survey{Step: remediations.StepOn{Name: "reboot"}, At: d.now},
			Snapshot: &alerts.Snapshot{AskedAt: d.now, Replicas: []alerts.Replica{{Watchdog: true, WatchdogAt: d.now, Alerts: map[string]alerts.Alert{fingerprintOf("n0"): d.word}}}},
		}
		s.Fleet = fleet.New(d.config, []*corev1.Node{d.node}, s.Ledger, func(string) bool { return false }, d.now)
		is := node.Decide(s, d.now)
		if is.Verb == lifecycle.VerbIssue {
			d.calls++
			return is
		}
		c := change(s, remediations.NodeRepairKey, is)
		if c == nil {
			return is
		}
		n := d.node.DeepCopy()
		apply(n.Annotations, c.Annotations)
		apply(n.Labels, c.Labels)
		d.node = n
	}
	d.t.Fatal("it decides again and again")
	return lifecycle.Decision{}
}

// TestCancelOutlivesTheHistory: a cancelled repair does not begin again while its alert fires. That
// holds however many days the next repair is held, and whatever else ended on the node meanwhile.
func TestCancelOutlivesTheHistory(t *testing.T) {
	for name, cancelled := range map[string]bool{"cancelled": true, "not cancelled, the control": false} {
		t.Run(name, func(t *testing.T) {
			d := newDays(t, "n0")
			e := remediations.Entry{ID: "cancld", Policy: "node-not-ready", Outcome: remediations.OutcomeCancelled, Steps: remediations.Attempts{}, Began: d.now.Add(-time.Hour), Ended: d.now, Cause: fingerprintOf("n0")}
			if cancelled {
				e.By = remediations.ByPerson
			}
			history := remediations.EncodeHistory(nil, e)
			d.node.Annotations[remediations.HistoryKey] = history
			d.decide()
			for day := range 400 {
				d.now = d.now.Add(24*time.Hour + time.Minute)
				is := d.decide()
				if !cancelled {
					require.Equal(t, lifecycle.VerbIssue, is.Verb)
					return
				}
				require.Equal(t, remediations.ReasonPaused, is.Reason, "after %d days: %s", day, is.Message)
				other := remediations.Entry{ID: fmt.Sprintf("o%05d", day), Policy: "another", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Ended: d.now}
				history := remediations.EncodeHistory(modelRegistry.ReadJournal(d.node).History, other)
				d.node = d.node.DeepCopy()
				d.node.Annotations[remediations.HistoryKey] = history
			}
			require.NotContains(t, d.node.Annotations[remediations.HistoryKey], `"id":"cancld"`, "it fell out long ago")
			d.word.StartsAt = d.now
			d.now = d.now.Add(time.Hour)
			is := d.decide()
			require.Equal(t, remediations.ReasonPaused, is.Reason, "Prometheus was away for a while, and the node is ill as before")
			require.Contains(t, is.Message, "the node shows the same fault: Ready is Unknown since")
			d.node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(d.now.Add(-time.Minute))
			require.Equal(t, lifecycle.VerbIssue, d.decide().Verb, "it has ended, and fires again")
		})
	}
}

// TestRepairThatIsOnlyHeldLeavesOneEntry: a repair that is held day after day does not push earlier
// work out of the history.
func TestRepairThatIsOnlyHeldLeavesOneEntry(t *testing.T) {
	d := newDays(t, "n0")
	done := remediations.Entry{ID: "done00", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Ended: d.now.Add(-48 * time.Hour)}
	d.node.Annotations[remediations.HistoryKey] = remediations.EncodeHistory(nil, done)
	d.node.Annotations[remediations.PauseKey] = "true"
	d.decide()
	for range 30 {
		d.now = d.now.Add(24*time.Hour + time.Minute)
		require.Equal(t, remediations.ReasonPaused, d.decide().Reason)
	}
	history := modelRegistry.ReadJournal(d.node).History
	require.Len(t, history, 2)
	require.Equal(t, "done00", history[1].ID)
	require.Equal(t, remediations.OutcomeCancelled, history[0].Outcome)
}
