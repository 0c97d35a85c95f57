package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// label sets a person's label on a Node, or removes it.
func (y *yard) label(node, key string, value any) {
	y.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	require.NoError(y.t, err)
	_, err = y.lab.Client().CoreV1().Nodes().Patch(context.WithoutCancel(y.t.Context()), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(y.t, err)
}

// consumed waits until Drydock has removed a person's key from the Node.
func (y *yard) consumed(node, key string) {
	y.t.Helper()
	y.await(node, key+" consumed", func(n *corev1.Node) bool { _, there := n.Annotations[key]; return !there })
}

// cancelled waits until the repair has ended because a person cancelled it.
func (y *yard) cancelled(node, id string) {
	y.t.Helper()
	e := y.entry(node, func(e remediations.Entry) bool { return e.ID == id })
	require.Equal(y.t, remediations.OutcomeCancelled, e.Outcome, e.Why)
	require.Equal(y.t, remediations.ByPerson, e.By)
	require.Equal(y.t, "drydock.dev/cancel was set", e.Why)
	y.awaitEvent(node, "RepairCancelled", id)
	y.consumed(node, remediations.CancelKey)
}

// A repair is requested for a healthy node. The node is repaired once, through every guard except
// the alert's, and the repair is proven like any other.
func TestARequestIsCarriedOut(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: several(config(policy(nil)))})
	cases := []struct{ node, request, is string }{
		{"node-10", "remediation/reboot", "remediation/reboot"},
		{"node-11", "policy/node-not-ready", "policy/node-not-ready"},
		{"node-12", "reboot", "remediation/reboot"},
		{"node-13", "node-not-ready", "policy/node-not-ready"},
	}
	for _, c := range cases {
		y.annotate(c.node, remediations.RequestKey, c.request)
	}
	for _, c := range cases {
		e := y.recovers(c.node, 1)
		require.Equal(t, c.is, e.Request, c.request)
		require.Empty(t, e.Cause, c.request)
		require.Equal(t, []string{"reboot:1"}, e.Steps.Texts(), c.request)
		n := y.node(c.node)
		require.NotContains(t, n.Annotations, remediations.RequestKey, c.request)
		require.NotContains(t, n.Annotations, remediations.NodeRepairKey, c.request)
		y.awaitEvent(c.node, "RepairStarted", "request "+c.is)
		y.awaitEvent(c.node, "RepairStepIssued", "as drydock.dev/request asked: "+c.is)
	}
	y.measures(d, `drydock_repairs_total{outcome="Recovered",policy="remediation/reboot"} 2`)
	require.Len(t, y.civo.Done(civosim.HardReboots), len(cases))
}

// A request that is unreadable gets an answer and has no effect. So does a request during a repair.
func TestARequestThatCannotBe(t *testing.T) {
	y := newYard(t)
	const nonsense, busy = "node-14", "node-15"
	y.stubborn(busy)
	y.run(lab.DrydockOptions{Config: config(policy(map[string]any{"plan": []any{map[string]any{"step": "reboot", "wait": patience, "attempts": 2}}}))})
	for value, says := range map[string]string{
		"make it well, please":        "write policy/<name> or remediation/<name>",
		"remediation/exorcise":        "no remediation for nodes with this name",
		"policy/no-such":              "no policy with this name",
		"remediation/restart-kubelet": "a provider that it needs is not configured",
		"remediation/drain":           "only prepares another step",
	} {
		y.annotate(nonsense, remediations.RequestKey, value)
		y.consumed(nonsense, remediations.RequestKey)
		y.awaitEvent(nonsense, "AnnotationInvalid", says)
	}
	require.NotContains(t, y.node(nonsense).Annotations, remediations.NodeRepairKey)

	y.fail(busy)
	r := y.record(busy, "its reboot verified", verifying)
	y.annotate(busy, remediations.RequestKey, "remediation/reboot")
	y.consumed(busy, remediations.RequestKey)
	y.awaitEvent(busy, "RequestRefused", "remediation/reboot: repair "+r.ID+" by policy node-not-ready is under way")
	require.Equal(t, r, remediations.ReadJournal(y.node(busy)).Record, "it goes on as it was")
	require.Equal(t, 1, y.reboots(busy))
	require.Zero(t, y.reboots(nonsense))
}

// In observe mode a request is refused, and the answer says what would have been done.
func TestARequestInObserveMode(t *testing.T) {
	y := newYard(t)
	c := config(policy(nil))
	c["mode"] = "observe"
	y.run(lab.DrydockOptions{Config: c})
	for _, request := range []string{"remediation/reboot", "policy/node-not-ready"} {
		y.annotate("node-16", remediations.RequestKey, request)
		y.consumed("node-16", remediations.RequestKey)
		y.awaitEvent("node-16", "RequestRefused", "Observing: would reboot node-16 now (attempt 1) as drydock.dev/request asked: "+request)
	}
	require.NotContains(t, y.node("node-16").Annotations, remediations.NodeRepairKey)
	require.Empty(t, y.civo.Calls())
}

// A request needs no alert, but a silence for an alert about the node holds the repair.
func TestASilenceHoldsARequest(t *testing.T) {
	y := newYard(t)
	const node = "node-17"
	y.run(lab.DrydockOptions{Config: config(policy(nil))})
	expire := y.silenceBoth("hands off", "node="+node)
	y.fail(node)
	y.alertmanagers(node, "silenced", isState("suppressed"))
	require.NotEmpty(t, y.held(node, remediations.ReasonSilenced).Cause.Alert, "nobody posted it, and people see that it is held")
	y.annotate(node, remediations.RequestKey, "remediation/reboot")
	r := y.record(node, "held as a request", func(r *remediations.Record) bool {
		return r.Cause.Request == "remediation/reboot" && r.Hold != nil && r.Hold.Reason == remediations.ReasonSilenced
	})
	require.Contains(t, r.Hold.Message, "hands off")
	y.consumed(node, remediations.RequestKey)
	require.Zero(t, y.reboots(node))
	expire()
	e := y.recovers(node, 1)
	require.Equal(t, r.ID, e.ID)
}

// A pause with an end time ends by itself, and its key is removed. A label keeps Drydock away for
// good.
func TestAPauseAndALabelHold(t *testing.T) {
	y := newYard(t)
	const until, forever, unclear, label = "node-18", "node-19", "node-20", "node-21"
	y.run(lab.DrydockOptions{Config: several(config(policy(nil)))})
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	y.annotate(until, remediations.PauseKey, end.Format(time.RFC3339)+" fan swap")
	y.annotate(forever, remediations.PauseKey, "true Ada is at it")
	y.annotate(unclear, remediations.PauseKey, "until lunch")
	y.label(label, remediations.ExcludeLabel, "true")
	t.Cleanup(func() { y.label(label, remediations.ExcludeLabel, nil) })
	for _, n := range []string{until, forever, unclear, label} {
		y.fail(n)
	}
	r := y.held(until, remediations.ReasonPaused)
	require.Contains(t, r.Hold.Message, "paused by drydock.dev/pause (fan swap)")
	require.NotNil(t, r.Hold.Until)
	require.Equal(t, end, r.Hold.Until.UTC())
	require.Contains(t, y.held(forever, remediations.ReasonPaused).Hold.Message, "(Ada is at it); to allow repairs: kubectl drydock resume ")
	require.Contains(t, y.held(unclear, remediations.ReasonPaused).Hold.Message, "until the value is corrected, the node is paused")
	y.awaitEvent(unclear, "AnnotationInvalid", `drydock.dev/pause="until lunch" is not understood: write "true", or an end time like`)
	require.Contains(t, y.held(label, remediations.ReasonExcluded).Hold.Message, "the node has the label drydock.dev/exclude=true")

	require.Zero(t, y.reboots(until))
	y.annotate(until, remediations.PauseKey, time.Now().Add(3*time.Second).UTC().Format(time.RFC3339)+" fan swap") // it will end
	y.recovers(until, 1)
	require.NotContains(t, y.node(until).Annotations, remediations.PauseKey, "the leader took it off")
	for _, n := range []string{forever, unclear, label} {
		require.Zero(t, y.reboots(n), n)
	}
	require.Equal(t, "until lunch", y.node(unclear).Annotations[remediations.PauseKey], "a person's word stays")
	require.Equal(t, 1, y.times(unclear, "AnnotationInvalid"), "it is said once")

	y.unannotate(forever, remediations.PauseKey)
	y.unannotate(unclear, remediations.PauseKey)
	y.label(label, remediations.ExcludeLabel, nil)
	for _, n := range []string{forever, unclear, label} {
		y.recovers(n, 1)
	}
}

// The hold shows the exact command that approves the repair. The approval is only for that repair.
func TestApprovalIsForOneRepair(t *testing.T) {
	y := newYard(t)
	const node = "node-22"
	y.run(lab.DrydockOptions{Config: config(policy(map[string]any{"approval": true}))})
	y.fail(node)
	r := y.held(node, remediations.ReasonAwaitingApproval)
	y.awaitEvent(node, "RepairHeld", "AwaitingApproval: policy node-not-ready needs a person's approval: kubectl drydock approve "+node+", or kubectl annotate node "+node+" drydock.dev/approve="+r.ID)
	y.annotate(node, remediations.ApproveKey, "aaaaaa")
	y.awaitEvent(node, "AnnotationInvalid", `drydock.dev/approve="aaaaaa": no repair of that id waits for approval on this node`)
	y.consumed(node, remediations.ApproveKey)
	require.Zero(t, y.reboots(node))

	y.annotate(node, remediations.ApproveKey, r.ID)
	require.Equal(t, r.ID, y.recovers(node, 1).ID)
	y.consumed(node, remediations.ApproveKey)
}

// times returns how often an Event of this test with that reason was sent about the node.
func (y *yard) times(node, reason string) (n int) {
	y.t.Helper()
	events, err := y.lab.Client().EventsV1().Events("").List(y.t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason + ",regarding.name=" + node})
	require.NoError(y.t, err)
	for _, e := range events.Items {
		switch {
		case e.EventTime.Time.Before(y.began):
		case e.Series != nil:
			n += int(e.Series.Count)
		default:
			n++
		}
	}
	return n
}

// A repair is cancelled before its first step, between two steps, and while a step is verified. It
// ends there, and its slot is free. While the same alert continues to fire, it starts no repair
// until a person requests one.
func TestCancel(t *testing.T) {
	y := newYard(t)
	const pending, between, verified, control = "node-23", "node-24", "node-25", "node-26"
	reboots := map[string]int{pending: 0, between: 1, verified: 1}
	y.stubborn(between, verified)
	d := y.run(lab.DrydockOptions{Config: several(config(twice(soon, nil)))})
	cancel := func(node string, r *remediations.Record) {
		y.annotate(node, remediations.CancelKey, r.ID)
		y.cancelled(node, r.ID)
	}
	first := y.silenceBoth("not now", "node="+pending)
	y.fail(pending)
	cancel(pending, y.held(pending, remediations.ReasonSilenced))

	y.fail(verified)
	cancel(verified, y.record(verified, "its reboot verified", verifying))

	y.fail(between)
	y.record(between, "its reboot verified", verifying)
	both := y.silenceBoth("not now", "node="+between)
	r := y.held(between, remediations.ReasonSilenced)
	require.Equal(t, []string{"reboot:1"}, r.Done.Texts())
	cancel(between, r)
	y.ledger("all slots are free", func(l *ledger.Ledger) bool { return len(l.Slots) == 0 })

	first()
	both()
	d.Kill()
	require.NoError(t, y.lab.Restart(t.Context(), d), "what was cancelled is on the Node, not in the process")
	y.fail(control)
	y.recovers(control, 1)
	for node, n := range reboots {
		r := y.held(node, remediations.ReasonPaused)
		require.Contains(t, r.Hold.Message, "of this alert was cancelled at")
		require.Contains(t, r.Hold.Message, "or by drydock.dev/request=policy/node-not-ready")
		require.Equal(t, n, y.reboots(node), "%s: it fires on, and nothing new began", node)
		require.False(t, y.node(node).Spec.Unschedulable)
	}

	for node := range reboots {
		y.annotate(node, remediations.RequestKey, "policy/node-not-ready")
	}
	for node, n := range reboots {
		require.Equal(t, "policy/node-not-ready", y.recovers(node, n+1).Request)
	}
}

// A person tried to stop something, but what they wrote is unreadable. Then the node is paused, and
// an Event says so.
func TestAnUnreadableCancel(t *testing.T) {
	y := newYard(t)
	const node, idle = "node-27", "node-28"
	y.stubborn(node)
	y.run(lab.DrydockOptions{Config: config(twice(soon, nil))})
	y.annotate(idle, remediations.CancelKey, "aaaaaa")
	y.consumed(idle, remediations.CancelKey)
	y.awaitEvent(idle, "AnnotationInvalid", `drydock.dev/cancel="aaaaaa": no repair of that id is under way on this node`)

	y.fail(node)
	r := y.record(node, "its reboot verified", verifying)
	y.annotate(node, remediations.CancelKey, "stop it!")
	y.consumed(node, remediations.CancelKey)
	y.awaitEvent(node, "AnnotationInvalid", `drydock.dev/cancel="stop it!" is not understood: write the repair's id, drydock.dev/cancel=`+r.ID)
	require.Equal(t, "true drydock.dev/cancel=stop it! was not understood", y.node(node).Annotations[remediations.PauseKey])
	require.Equal(t, r.ID, y.held(node, remediations.ReasonPaused).ID)
	require.Equal(t, 1, y.reboots(node))

	y.unannotate(node, remediations.PauseKey)
	require.Equal(t, r.ID, y.recovers(node, 2).ID)
}

// TestBreakGlassHolds: nothing new starts on the node. The ledger keeps since when break-glass is
// set, also across a restart.
func TestBreakGlassHolds(t *testing.T) {
	y := newYard(t)
	const node = "node-29"
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.annotate(node, remediations.BreakGlassKey, "the console is open")
	y.fail(node)
	r := y.held(node, remediations.ReasonPaused)
	require.Contains(t, r.Hold.Message, "drydock.dev/break-glass is set (the console is open)")
	y.awaitEvent(node, "RepairHeld", "Paused: drydock.dev/break-glass is set (the console is open)")
	y.awaitEvent(node, "BreakGlassSet", "drydock.dev/break-glass was set by the field manager ")
	var breakGlass ledger.BreakGlass
	broken := func(l *ledger.Ledger) bool {
		breakGlass = l.Status.BreakGlass[node]
		return !breakGlass.Since.IsZero()
	}
	y.ledger("since when", broken)
	require.WithinRange(t, breakGlass.Since, y.began.Add(-time.Second), time.Now())
	since := breakGlass.Since

	d.Kill()
	require.NoError(t, y.lab.Restart(t.Context(), d))
	y.fail("node-28") // shows that Drydock leads again
	y.recovers("node-28", 1)
	y.ledger("since when", broken)
	require.Equal(t, since, breakGlass.Since)
	require.Equal(t, r.ID, y.held(node, remediations.ReasonPaused).ID)
	require.Zero(t, y.reboots(node))

	y.unannotate(node, remediations.BreakGlassKey)
	require.Equal(t, r.ID, y.recovers(node, 1).ID)
	y.ledger("it is whole", func(l *ledger.Ledger) bool { return len(l.Status.BreakGlass) == 0 })
}

// Drydock is killed and started again while every kind of hold is active. The records stay as they
// are, and nothing is done. Then each cause is removed, and the same repair continues.
func TestKilledInEveryKindOfHold(t *testing.T) {
	y := newYard(t)
	const control, approved, inhibited = "node-40", "node-35", "node-31"
	// Only one replica knows the inhibition, and it may learn of the alert later than the other.
	asked := policy(map[string]any{
		"name": "asks-first", "approval": true,
		"nodeSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": corev1.LabelHostname, "operator": "In", "values": []string{approved, inhibited}}}},
	})
	c := several(map[string]any{"policies": []any{asked, policy(nil)}})
	d := y.run(lab.DrydockOptions{Config: c})
	y.configure(d, inhibits(inhibited))
	holds := []struct {
		node   string
		reason remediations.Reason
		begin  func(node string) (end func(id string))
	}{
		{"node-30", remediations.ReasonSilenced, func(node string) func(string) {
			end := y.silenceBoth("not now", "node="+node)
			return func(string) { end() }
		}},
		{inhibited, remediations.ReasonInhibited, func(node string) func(string) {
			end := y.inhibit()
			return func(id string) {
				y.annotate(node, remediations.ApproveKey, id)
				end()
			}
		}},
		{"node-32", remediations.ReasonPaused, func(node string) func(string) {
			y.annotate(node, remediations.PauseKey, "true not now")
			return func(string) { y.unannotate(node, remediations.PauseKey) }
		}},
		{"node-33", remediations.ReasonPaused, func(node string) func(string) {
			y.annotate(node, remediations.BreakGlassKey, "not now")
			return func(string) { y.unannotate(node, remediations.BreakGlassKey) }
		}},
		{"node-34", remediations.ReasonExcluded, func(node string) func(string) {
			y.label(node, remediations.ExcludeLabel, "true")
			t.Cleanup(func() { y.label(node, remediations.ExcludeLabel, nil) })
			return func(string) { y.label(node, remediations.ExcludeLabel, nil) }
		}},
		{approved, remediations.ReasonAwaitingApproval, func(node string) func(string) {
			return func(id string) { y.annotate(node, remediations.ApproveKey, id) }
		}},
		{"node-36", remediations.ReasonPaused, func(node string) func(string) {
			y.annotate(node, remediations.PauseKey, "until lunch")
			return func(string) { y.unannotate(node, remediations.PauseKey) }
		}},
		{"node-37", remediations.ReasonCordonedByOther, func(node string) func(string) {
			y.cordon(node, true)
			t.Cleanup(func() { y.cordon(node, false) })
			return func(string) { y.cordon(node, false) }
		}},
	}
	end := make([]func(string), len(holds))
	before := make([]*remediations.Record, len(holds))
	for i, h := range holds {
		end[i] = h.begin(h.node)
		y.fail(h.node)
	}
	for i, h := range holds {
		before[i] = y.held(h.node, h.reason)
	}
	d.Kill()
	require.NoError(t, y.lab.Restart(t.Context(), d))
	y.fail(control)
	y.recovers(control, 1)
	for i, h := range holds {
		r := y.held(h.node, h.reason)
		r.Hold, before[i].Hold = nil, nil // a repair that was Blind for a moment has a newer Since
		require.Equal(t, before[i], r, "%s on %s", h.reason, h.node)
	}
	require.Len(t, y.civo.Done(civosim.HardReboots), 1, "the control's alone")

	for i := range holds {
		end[i](before[i].ID)
	}
	for i, h := range holds {
		require.Equal(t, before[i].ID, y.recovers(h.node, 1).ID, "%s on %s", h.reason, h.node)
	}
}

// cordon cordons the node as an administrator does.
func (y *yard) cordon(node string, unschedulable bool) {
	y.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
	_, err := y.lab.Client().CoreV1().Nodes().Patch(context.WithoutCancel(y.t.Context()), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(y.t, err)
}
