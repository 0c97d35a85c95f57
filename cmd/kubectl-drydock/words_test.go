package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
)

var nodesResource = schema.GroupResource{Resource: "nodes"}

// patches are the PATCHes that were sent.
func (d *desk) patches() (out []clienttesting.PatchActionImpl) {
	for _, a := range d.cluster.Actions() {
		if p, ok := a.(clienttesting.PatchActionImpl); ok {
			out = append(out, p)
		}
	}
	return out
}

func exhausted(name, id, policy string) *corev1.Node {
	return under(name, record(id, remediations.PhaseExhausted, func(r *remediations.Record) { r.Policy = policy }))
}

func malformed(name string) *corev1.Node {
	n := node(name, map[string]string{remediations.NodeRepairKey: "{"})
	n.Labels[remediations.PhaseLabel] = "Acting"
	return n
}

func TestEachWordIsOneAnnotationAndOneSentence(t *testing.T) {
	waiting := record("bbbbbb", remediations.PhasePending, held(remediations.ReasonAwaitingApproval, "", time.Time{}))
	silenced := record("bbbbbb", remediations.PhasePending, held(remediations.ReasonSilenced, "", time.Time{}))
	both := map[string]string{remediations.PauseKey: "true", remediations.BreakGlassKey: "why"}
	for name, c := range map[string]struct {
		node *corev1.Node
		args string
		// key and value are an annotation that the Node has afterwards. An empty value means that the
		// Node does not have the key.
		key, value string
		said       string
	}{
		"pause":               {node("n", nil), "pause n", remediations.PauseKey, "true", "n is paused until `kubectl drydock resume n`: Drydock starts no repair there. `kubectl drydock status` shows what the pause holds."},
		"pause with a reason": {node("n", nil), "pause n --why disk", remediations.PauseKey, "true disk", "n is paused until `kubectl drydock resume n`"},
		"pause for a while":   {node("n", nil), "pause n --for 1d2h --why disk", remediations.PauseKey, "2026-11-21T23:05:00Z disk", "n is paused until 2026-11-21T23:05:00Z, or `kubectl drydock resume n`"},
		"pause in mid-repair": {under("n", record("aaaaaa", remediations.PhaseVerifying)), "pause n", remediations.PauseKey, "true", "Drydock starts nothing new, and still verifies the reboot that repair aaaaaa has issued"},
		"pause again":         {node("n", map[string]string{remediations.PauseKey: "true"}), "pause n --for 2h", remediations.PauseKey, "2026-11-20T23:05:00Z", "n is paused until 2026-11-20T23:05:00Z"},
		"resume":              {node("n", map[string]string{remediations.PauseKey: "true"}), "resume n", remediations.PauseKey, "", "n: the pause ended. Repairs that waited for this continue by themselves"},
		"resume from both":    {node("n", both), "resume n", remediations.BreakGlassKey, "", "n: the pause and break-glass ended"},
		"resume nothing":      {node("n", nil), "resume n", remediations.PauseKey, "", "n is not paused and has no break-glass set; nothing was written."},
		"repair by step":      {node("n", nil), "repair n --with reboot", remediations.RequestKey, "remediation/reboot", "A repair of n by remediation/reboot is requested. It begins when no guard holds it"},
		"repair by policy":    {node("n", nil), "repair n --policy mine", remediations.RequestKey, "policy/mine", "A repair of n by policy/mine is requested"},
		"repair beside a hold": {under("n", silenced), "repair n --with reboot", remediations.RequestKey, "remediation/reboot",
			"A repair of n by remediation/reboot is requested"},
		"approve":                {under("n", waiting), "approve n", remediations.ApproveKey, "bbbbbb", "Repair bbbbbb of n is approved: it begins with reboot:1 as soon as no other guard holds it. To"},
		"approve by id":          {under("n", waiting), "approve n bbbbbb", remediations.ApproveKey, "bbbbbb", "Repair bbbbbb of n is approved"},
		"approve what is held":   {under("n", silenced), "approve n", remediations.ApproveKey, "bbbbbb", "(now Silenced holds it)"},
		"cancel":                 {under("n", record("aaaaaa", remediations.PhaseVerifying)), "cancel n", remediations.CancelKey, "aaaaaa", "Repair aaaaaa of n ends at once: Drydock issues nothing more, and undoes what it did to the Node"},
		"cancel a call":          {under("n", record("aaaaaa", remediations.PhaseActing)), "cancel n aaaaaa", remediations.CancelKey, "aaaaaa", "ends when its running call has ended"},
		"cancel what waits":      {under("n", waiting), "cancel n", remediations.CancelKey, "bbbbbb", "Repair bbbbbb of n ends at once"},
		"reset":                  {exhausted("n", "cccccc", "p"), "reset n", remediations.ResetKey, "true", "Reset requested: Drydock deletes the exhausted repair cccccc on n with its counts, and the cordon if Drydock set it. Policy p starts again if it was stopped"},
		"reset by id":            {exhausted("n", "cccccc", "p"), "reset n cccccc", remediations.ResetKey, "true", "Reset requested: Drydock deletes the exhausted repair cccccc on n"},
		"reset what is garbled":  {malformed("n"), "reset n", remediations.ResetKey, "true", "Reset requested: Drydock deletes the unreadable record of n"},
		"reset a policy":         {exhausted("n", "cccccc", "p"), "reset --policy p", remediations.ResetKey, "true", "Reset requested: Drydock deletes the exhausted repair cccccc on n"},
		"break-glass":            {node("n", nil), "break-glass n --why now", remediations.BreakGlassKey, "now", "Break-glass is set on n for one hour, or until `kubectl drydock resume n`: admission allows every change"},
		"resume an excluded one": {func() *corev1.Node { n := node("n", both); n.Labels[remediations.ExcludeLabel] = "true"; return n }(), "resume n", remediations.PauseKey, "", "but the label drydock.dev/exclude=true still keeps Drydock away"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.node)
			code, stdout, stderr := d.run(strings.Fields(c.args)...)
			require.Equal(t, cli.ExitOK, code, stderr)
			require.Empty(t, stderr)
			require.Contains(t, stdout, c.said)
			require.Regexp(t, `\A[^\n]+\n\z`, stdout, "one sentence")

			after := d.node("n")
			value, there := after.Annotations[c.key]
			require.Equal(t, c.value, value)
			require.Equal(t, c.value != "", there)
			require.Equal(t, c.node.Annotations[remediations.NodeRepairKey], after.Annotations[remediations.NodeRepairKey])
			require.Equal(t, c.node.Labels[remediations.PhaseLabel], after.Labels[remediations.PhaseLabel])
			if strings.Contains(c.said, "nothing was written") {
				require.Empty(t, d.patches())
				return
			}
			require.Len(t, d.patches(), 1, "one PATCH")
			require.Equal(t, actions.FieldManager, d.patches()[0].PatchOptions.FieldManager)
		})
	}
}

// What the core reads is what the plugin writes.
func TestAPauseIsReadAsItWasMeant(t *testing.T) {
	d := newDesk(t, node("n", nil))
	code, _, stderr := d.run("pause", "n", "--for", "90m", "--why", " two\nlines\x1b[31m ")
	require.Equal(t, cli.ExitOK, code, stderr)
	p, err := remediations.ParsePause(d.node("n").Annotations[remediations.PauseKey])
	require.NoError(t, err)
	require.Equal(t, remediations.Pause{Until: now.Add(90 * time.Minute), Why: "two lines [31m"}, p)
}

func TestARefusalIsOneSentence(t *testing.T) {
	requested := node("n", map[string]string{remediations.RequestKey: "policy/p"})
	begun := record("bbbbbb", remediations.PhasePending)
	begun.Intent = &remediations.Intent{ID: "bbbbbb-1-1", At: now}
	asked := record("bbbbbb", remediations.PhasePending, func(r *remediations.Record) {
		r.Cause = remediations.Cause{Request: "remediation/reboot"}
	})
	for name, c := range map[string]struct {
		node       *corev1.Node
		args, want string
	}{
		"pause no node":             {nil, "pause m", `there is no node "m" in this cluster`},
		"resume no node":            {nil, "resume m", `there is no node "m" in this cluster`},
		"repair no node":            {nil, "repair m --with reboot", `there is no node "m" in this cluster`},
		"cancel no node":            {nil, "cancel m", `there is no node "m" in this cluster`},
		"reset no node":             {nil, "reset m", `there is no node "m" in this cluster`},
		"break the glass of none":   {nil, "break-glass m --why w", `there is no node "m" in this cluster`},
		"repair by both":            {node("n", nil), "repair n --with reboot --policy p", "--with and --policy were both given; give one of them"},
		"repair by what is not":     {node("n", nil), "repair n --with prayer", `there is no remediation "prayer" of a node; there are external, external-replace, powerOff, reboot, replace, restart-cni, restart-containerd, restart-kube-proxy, restart-kubelet, restart-unit`},
		"repair by a drain":         {node("n", nil), "repair n --with drain", "drain only prepares another step and cures nothing alone; request a policy that has this step with --policy, or use kubectl drain"},
		"repair by another's":       {node("n", nil), "repair n --with mark-ready", `there is no remediation "mark-ready" of a node`},
		"repair twice":              {requested, "repair n --with reboot", "policy/p is already requested on n, and Drydock has not answered yet; to withdraw the request: kubectl annotate node n drydock.dev/request-"},
		"repair in flight":          {under("n", record("aaaaaa", remediations.PhaseActing)), "repair n --with reboot", "repair aaaaaa by policy node-not-ready is already on n (Acting, reboot:1); wait for its end, or run `kubectl drydock cancel n`"},
		"repair between attempts":   {under("n", begun), "repair n --with reboot", "repair bbbbbb by policy node-not-ready is already on n (Pending, reboot:1)"},
		"repair what was asked for": {under("n", asked), "repair n --with reboot", "repair bbbbbb by policy node-not-ready is already on n"},
		"repair what ran out":       {exhausted("n", "cccccc", "p"), "repair n --with reboot", "repair cccccc of n is exhausted; fix the node and run `kubectl drydock reset n` first"},
		"repair what is garbled":    {malformed("n"), "repair n --with reboot", "a record on n cannot be read (repair.drydock.dev/node: the record is not JSON: unexpected end of JSON input); to delete it: `kubectl drydock reset n`"},
		"approve nothing":           {node("n", nil), "approve n", "there is no repair on n"},
		"approve another":           {under("n", record("bbbbbb", remediations.PhasePending)), "approve n xxxxxx", "there is no repair xxxxxx on n; its repair is bbbbbb by policy node-not-ready, Pending"},
		"approve what has begun":    {under("n", record("aaaaaa", remediations.PhaseVerifying)), "approve n", "repair aaaaaa of n does not wait for approval: it has begun and is Verifying"},
		"approve what began before": {under("n", begun), "approve n", "repair bbbbbb of n does not wait for approval: it has begun and is Pending"},
		"approve what is garbled":   {malformed("n"), "approve n", "a record on n cannot be read"},
		"cancel nothing":            {node("n", nil), "cancel n", "there is no repair on n"},
		"cancel nothing by id":      {node("n", nil), "cancel n aaaaaa", "there is no repair on n"},
		"cancel another":            {under("n", record("aaaaaa", remediations.PhaseVerifying)), "cancel n xxxxxx", "there is no repair xxxxxx on n; its repair is aaaaaa by policy node-not-ready, Verifying"},
		"cancel what ran out":       {exhausted("n", "cccccc", "p"), "cancel n", "repair cccccc of n is exhausted, so there is nothing to cancel; once the node is fixed, run `kubectl drydock reset n`"},
		"cancel what is garbled":    {malformed("n"), "cancel n", "a record on n cannot be read"},
		"reset nothing":             {node("n", nil), "reset n", "there is nothing to reset on n: it has no exhausted repair and no unreadable record"},
		"reset again": {node("n", map[string]string{remediations.HistoryKey: remediations.EncodeEntries([]remediations.Entry{{ID: "cccccc", Policy: "p", Outcome: remediations.OutcomeExhausted, Steps: remediations.Attempts{}, Reset: true}})}),
			"reset n", "there is nothing to reset on n: it has no exhausted repair and no unreadable record; repair cccccc was already reset"},
		"reset another repair":    {exhausted("n", "cccccc", "p"), "reset n dddddd", "there is no exhausted repair dddddd on n; a reset would delete cccccc"},
		"reset what is under way": {under("n", record("aaaaaa", remediations.PhaseVerifying)), "reset n", "repair aaaaaa of n is Verifying and not exhausted; to end it: `kubectl drydock cancel n`"},
		"reset both":              {exhausted("n", "cccccc", "p"), "reset n --policy p", "a node and --policy were both given; give one of them"},
		"reset a policy of none":  {exhausted("n", "cccccc", "p"), "reset --policy q", "no node has an exhausted repair by policy q, and it is unknown whether the policy is stopped: there is no ConfigMap drydock-ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if c.node != nil {
				objects = append(objects, c.node)
			}
			d := newDesk(t, objects...)
			code, stdout, stderr := d.run(strings.Fields(c.args)...)
			require.Equal(t, cli.ExitFailed, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "error: "+c.want)
			require.Regexp(t, `\A[^\n]+\n\z`, stderr, "one sentence")
			for _, p := range d.patches() {
				require.Equal(t, "m", p.Name, "nothing is written but to a node that is not there")
			}
		})
	}
}

func TestARefusalQuotesTheAPIServer(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"forbidden":  {apierrors.NewForbidden(nodesResource, "n", errors.New(`User "dev" cannot patch resource "nodes"`)), `error: cancelling the repair of n was refused: nodes "n" is forbidden: User "dev" cannot patch resource "nodes"; the ClusterRole RELEASE-operator of Drydock's chart has that right: ask an administrator to bind it`},
		"a verb":     {apierrors.NewForbidden(nodesResource, "n", errors.New(`ValidatingAdmissionPolicy 'drydock' with binding 'drydock' denied request: drydock.dev/cancel is not set on node n: dev lacks the verb "cancel" on repairs.drydock.dev; the right to patch nodes is not enough. The ClusterRole RELEASE-operator has it: ask an administrator to bind that role`)), `error: cancelling the repair of n was refused: nodes "n" is forbidden: ValidatingAdmissionPolicy 'drydock' with binding 'drydock' denied request: drydock.dev/cancel is not set on node n: dev lacks the verb "cancel" on repairs.drydock.dev; the right to patch nodes is not enough. The ClusterRole RELEASE-operator has it: ask an administrator to bind that role`},
		"denied":     {apierrors.NewForbidden(nodesResource, "n", errors.New("admission webhook \"nodes.drydock.dev\" denied the request:\n  a request is pending\n")), `error: cancelling the repair of n was refused: nodes "n" is forbidden: admission webhook "nodes.drydock.dev" denied the request: a request is pending`},
		"gone":       {apierrors.NewNotFound(nodesResource, "n"), `error: there is no node "n" in this cluster`},
		"broken":     {apierrors.NewInternalError(errors.New("etcd is gone")), "error: it is unknown whether the change was written: cancelling the repair of n failed: Internal error occurred: etcd is gone; the node was read again and does not show the change. Wait 30s, then check the node with `kubectl drydock why n`, and repeat the command only if the node does not show the change"},
		"no webhook": {apierrors.NewInternalError(errors.New(`failed calling webhook "w": EOF`)), `error: cancelling the repair of n failed: Internal error occurred: failed calling webhook "w": EOF`},
		"far away":   {&url.Error{Op: "Patch", URL: "https://10.0.0.1:6443/api/v1/nodes/n", Err: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: no route to host")}}, `error: the cluster cannot be reached at 10.0.0.1:6443: dial tcp: connect: no route to host`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, under("n", record("aaaaaa", remediations.PhaseVerifying)))
			d.cluster.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			code, stdout, stderr := d.run("cancel", "n")
			require.Equal(t, cli.ExitFailed, code)
			require.Empty(t, stdout)
			require.Equal(t, c.want+"\n", stderr)
		})
	}
}

// racing lets something happen to the node between each reading and the write that rests on it.
func racing(d *desk, between func(attempt int) *corev1.Node) {
	attempt := 0
	d.cluster.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		attempt++
		n := between(attempt)
		if n == nil {
			return false, nil, nil
		}
		if err := d.cluster.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewConflict(nodesResource, n.Name, errors.New("the object has been modified"))
	})
}

func TestAWriteReportsARecordThatChangedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *corev1.Node
		args, want    string
	}{
		"another repair":  {under("n", record("aaaaaa", remediations.PhaseVerifying)), under("n", record("bbbbbb", remediations.PhaseVerifying)), "cancel n", "nothing was written, because n has changed: the command would now concern bbbbbb instead of aaaaaa; check `kubectl drydock status` and try again"},
		"no repair":       {under("n", record("aaaaaa", remediations.PhaseVerifying)), node("n", nil), "cancel n", "nothing was written, because n has changed: there is no repair on n"},
		"it ran out":      {under("n", record("aaaaaa", remediations.PhaseVerifying)), exhausted("n", "aaaaaa", "p"), "cancel n", "nothing was written, because n has changed: repair aaaaaa of n is exhausted, so there is nothing to cancel"},
		"it has begun":    {under("n", record("bbbbbb", remediations.PhasePending)), under("n", record("bbbbbb", remediations.PhaseActing)), "approve n", "nothing was written, because n has changed: repair bbbbbb of n does not wait for approval"},
		"somebody was it": {exhausted("n", "cccccc", "p"), node("n", nil), "reset n", "nothing was written, because n has changed: there is nothing to reset on n"},
		"another asked":   {node("n", nil), node("n", map[string]string{remediations.RequestKey: "policy/p"}), "repair n --with reboot", "nothing was written, because n has changed: policy/p is already requested on n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.before)
			racing(d, func(attempt int) *corev1.Node {
				if attempt == 1 {
					return c.after
				}
				return nil
			})
			code, stdout, stderr := d.run(strings.Fields(c.args)...)
			require.Equal(t, cli.ExitFailed, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "error: "+c.want)
			require.Equal(t, c.after.Annotations, d.node("n").Annotations, "nothing was written")
		})
	}
}

// Kubelets write their Nodes every few seconds. That must not refuse a person's action.
func TestANodeThatOnlyItsKubeletChangedIsTriedAgain(t *testing.T) {
	d := newDesk(t, under("n", record("aaaaaa", remediations.PhaseActing)))
	racing(d, func(attempt int) *corev1.Node {
		if attempt < actions.Attempts {
			return under("n", record("aaaaaa", remediations.PhaseVerifying))
		}
		return nil
	})
	code, stdout, stderr := d.run("cancel", "n")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "ends at once", "it says what is true of the repair as it is now")
	require.Equal(t, "aaaaaa", d.node("n").Annotations[remediations.CancelKey])

	d = newDesk(t, under("n", record("aaaaaa", remediations.PhaseActing)))
	racing(d, func(int) *corev1.Node { return under("n", record("aaaaaa", remediations.PhaseVerifying)) })
	code, _, stderr = d.run("cancel", "n")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, fmt.Sprintf("error: nothing was written, because n changed during each of %d attempts; try again\n", actions.Attempts), stderr)
}

func TestAWriteRequiresTheNodeAsRead(t *testing.T) {
	for args, n := range map[string]*corev1.Node{
		"cancel n":               under("n", record("aaaaaa", remediations.PhaseVerifying)),
		"approve n":              under("n", record("bbbbbb", remediations.PhasePending)),
		"reset n":                exhausted("n", "cccccc", "p"),
		"reset --policy p":       exhausted("n", "cccccc", "p"),
		"repair n --with reboot": node("n", nil),
	} {
		d := newDesk(t, n)
		code, _, stderr := d.run(strings.Fields(args)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Contains(t, string(d.patches()[0].Patch), `"resourceVersion":"1"`, args)
	}
}

func TestARefusalForOneNodeDoesNotStopTheOthers(t *testing.T) {
	d := newDesk(t, node("a", nil), node("b", nil))
	code, stdout, stderr := d.run("pause", "a", "gone", "b", "away")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, 2, strings.Count(stdout, "is paused until"))
	require.Equal(t, "error: there is no node \"gone\" in this cluster\nerror: there is no node \"away\" in this cluster\n", stderr)
	for _, name := range []string{"a", "b"} {
		require.Equal(t, "true", d.node(name).Annotations[remediations.PauseKey])
	}
}

func TestAStoppedPolicyIsResetOnItsFirstNode(t *testing.T) {
	d := newDesk(t, exhausted("b", "bbbbbb", "p"), exhausted("a", "aaaaaa", "q"), exhausted("c", "cccccc", "p"))
	code, _, stderr := d.run("reset", "--policy", "p")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Equal(t, "true", d.node("b").Annotations[remediations.ResetKey])
	for _, name := range []string{"a", "c"} {
		require.NotContains(t, d.node(name).Annotations, remediations.ResetKey)
	}
}
