package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	nodetarget "drydock.dev/drydock/remediations/targets/node"
)

// promoting puts the repair of the leader of fra1 on the node.
func promoting(n *corev1.Node, id string, phase remediations.Phase, change ...func(*remediations.Record)) *corev1.Node {
	r := record(id, phase, func(r *remediations.Record) {
		r.Step, r.Policy, r.Location = remediations.StepRef{Name: "promote-leader", Attempt: 1}, "mesh-leader-degraded", "fra1"
		if r.Intent != nil {
			r.Done, r.Intent.Successor = remediations.Attempts{{Name: "promote-leader", Number: 1}}, "node-10"
			r.Moves = []remediations.Move{{Location: "fra1", From: n.Name, To: "node-10", Before: map[string]*string{"node-10": nil}}}
		}
	})
	for _, c := range change {
		c(r)
	}
	n.Annotations[remediations.LocationKey] = r.Encode()
	n.Labels[remediations.PhaseLabel] = string(remediations.Registry(nil).LabelFor(n.Annotations))
	return n
}

// marking puts the repair of the sidecar of that pod on the node.
func marking(n *corev1.Node, id, pod string, phase remediations.Phase) *corev1.Node {
	p := remediations.Pod{Namespace: "default", Name: pod}
	n.Annotations[remediations.SidecarKey(p)] = record(id, phase, func(r *remediations.Record) {
		r.Step, r.Policy, r.Pod = remediations.StepRef{Name: "mark-ready", Attempt: 1}, "sidecar-not-ready", &p
		if r.Done != nil {
			r.Done = remediations.Attempts{{Name: "mark-ready", Number: 1}}
		}
		if r.Phase == remediations.PhasePending { // only one that observes is on record before it begins
			r.Hold = &remediations.Hold{Reason: remediations.ReasonObserving, Since: now}
		}
	}).Encode()
	return n
}

// TestCommandsFindRepairsOfOtherTargets: a mesh leader's, or a sidecar's, as the engine takes it.
func TestCommandsFindRepairsOfOtherTargets(t *testing.T) {
	n := func() *corev1.Node { return node("n", nil) }
	pending := func() *corev1.Node { return under("n", record("bbbbbb", remediations.PhasePending)) }
	awaits := held(remediations.ReasonAwaitingApproval, "", time.Time{})
	for name, c := range map[string]struct {
		node             *corev1.Node
		args             string
		key, value, said string
	}{
		"cancel a leader's":                {promoting(n(), "a22222", remediations.PhaseVerifying), "cancel n", remediations.CancelKey, "a22222", "Repair a22222 of n (leader of fra1) ends at once: Drydock issues nothing more; location fra1 is still led by node-10 (before the repair: n). `kubectl drydock history n` then shows the repair."},
		"cancel a leader's call":           {promoting(n(), "a22222", remediations.PhaseActing), "cancel n", remediations.CancelKey, "a22222", "ends when its running call has ended"},
		"cancel what admission names":      {promoting(pending(), "a22222", remediations.PhaseActing), "cancel n", remediations.CancelKey, "a22222", "Repair a22222 of n (leader of fra1)"},
		"cancel the node's own by id":      {promoting(pending(), "a22222", remediations.PhaseActing), "cancel n bbbbbb", remediations.CancelKey, "bbbbbb", "Repair bbbbbb of n ends at once"},
		"cancel beside what ran out":       {promoting(exhausted("n", "cccccc", "p"), "a22222", remediations.PhaseVerifying), "cancel n", remediations.CancelKey, "a22222", "Repair a22222"},
		"cancel a sidecar's":               {marking(n(), "e11111", "db-0", remediations.PhaseVerifying), "cancel n", remediations.CancelKey, "e11111", "Repair e11111 of n (default/db-0) ends at once: Drydock issues nothing more. `kubectl"},
		"cancel the node's, not a sidecar": {marking(pending(), "e11111", "db-0", remediations.PhaseActing), "cancel n", remediations.CancelKey, "bbbbbb", "Repair bbbbbb of n ends"},
		"cancel a sidecar's by id":         {marking(pending(), "e11111", "db-0", remediations.PhaseActing), "cancel n e11111", remediations.CancelKey, "e11111", "Repair e11111 of n (default/db-0)"},
		"approve a leader's":               {promoting(n(), "a22222", remediations.PhasePending, awaits), "approve n", remediations.ApproveKey, "a22222", "Repair a22222 of n (leader of fra1) is approved: it begins with promote-leader:1"},
		"approve the one that waits":       {promoting(pending(), "a22222", remediations.PhasePending, awaits), "approve n", remediations.ApproveKey, "a22222", "Repair a22222 of n (leader of fra1) is approved"},
		"reset a leader's":                 {promoting(n(), "a22222", remediations.PhaseExhausted), "reset n", remediations.ResetKey, "true", "Reset requested: Drydock deletes the exhausted repair a22222 of n (leader of fra1). Policy mesh-leader-degraded starts again if it was stopped. `kubectl"},
		"reset a leader's beside a hold":   {promoting(pending(), "a22222", remediations.PhaseExhausted), "reset n", remediations.ResetKey, "true", "Reset requested: Drydock deletes the exhausted repair a22222 of n (leader of fra1)"},
		"reset a leader's policy":          {promoting(n(), "a22222", remediations.PhaseExhausted), "reset --policy mesh-leader-degraded", remediations.ResetKey, "true", "Reset requested: Drydock deletes the exhausted repair a22222"},
		"reset both": {promoting(exhausted("n", "cccccc", "p"), "a22222", remediations.PhaseExhausted), "reset n", remediations.ResetKey, "true",
			"Reset requested: Drydock deletes the exhausted repairs cccccc on n, a22222 of n (leader of fra1) with its counts, and the cordon if Drydock set it. Policies p, mesh-leader-degraded start again if they were stopped"},
		"reset sidecars'": {marking(n(), "e11111", "db-0", remediations.PhaseExhausted), "reset n", remediations.ResetKey, "true",
			"Reset requested: Drydock deletes the exhausted repair e11111 of n (default/db-0). A stopped policy that repairs the node starts again. `kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.node)
			code, stdout, stderr := d.run(strings.Fields(c.args)...)
			require.Equal(t, cli.ExitOK, code, stderr)
			require.Contains(t, stdout, c.said)
			require.Regexp(t, `\A[^\n]+\n\z`, stdout, "one sentence")
			after := d.node("n")
			require.Equal(t, c.value, after.Annotations[c.key])
			require.Len(t, after.Annotations, len(c.node.Annotations)+1, "nothing else is written")
			decided := nodetarget.Decide(&lifecycle.State{
				Config: &remediations.Config{}, Node: after, Journal: remediations.ReadJournal(after), Ledger: &ledger.Ledger{},
			}, now)
			require.Empty(t, decided.Notices, "the engine takes it")
		})
	}
}

func TestCommandsRefuseTheWrongRepair(t *testing.T) {
	n := func() *corev1.Node { return node("n", nil) }
	two := marking(marking(n(), "e11111", "db-0", remediations.PhaseVerifying), "e22222", "db-1", remediations.PhaseVerifying)
	for name, c := range map[string]struct {
		node       *corev1.Node
		args, want string
	}{
		"cancel one of several":          {two, "cancel n", "there are several repairs on n: e"},
		"cancel another than those":      {two, "cancel n xxxxxx", "there is no repair xxxxxx on n; its repairs are e"},
		"cancel another than a leader's": {promoting(n(), "a22222", remediations.PhaseVerifying), "cancel n xxxxxx", "there is no repair xxxxxx on n; its repair is a22222 of n (leader of fra1) by policy mesh-leader-degraded, Verifying"},
		"cancel a leader's that ran out": {promoting(n(), "a22222", remediations.PhaseExhausted), "cancel n", "repair a22222 of n (leader of fra1) is exhausted, so there is nothing to cancel; once the node is fixed, run `kubectl drydock reset n`"},
		"approve a sidecar's":            {marking(n(), "e11111", "db-0", remediations.PhasePending), "approve n", "repair e11111 of n (default/db-0) does not wait for approval: its policy only observes"},
		"approve one of two": {promoting(under("n", record("bbbbbb", remediations.PhasePending)), "a22222", remediations.PhasePending), "approve n",
			"there are several repairs on n: bbbbbb by policy node-not-ready, Pending; a22222 of n (leader of fra1) by policy mesh-leader-degraded, Pending; give the ID of one: kubectl drydock approve n ID"},
		"reset beside one in flight": {promoting(under("n", record("aaaaaa", remediations.PhaseActing)), "a22222", remediations.PhaseExhausted), "reset n",
			"repair aaaaaa of n is Acting; the exhausted repair a22222 of n (leader of fra1) can be reset only when the first one has ended; to end it: `kubectl drydock cancel n`"},
		"reset a leader's in flight": {promoting(n(), "a22222", remediations.PhaseActing), "reset n", "repair a22222 of n (leader of fra1) is Acting and not exhausted; to end it: `kubectl drydock cancel n`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.node)
			code, stdout, stderr := d.run(strings.Fields(c.args)...)
			require.Equal(t, cli.ExitFailed, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "error: "+c.want)
			require.Empty(t, d.patches())
		})
	}
}

// TestAStoppedPolicyContinuesWithoutAnExhaustedNode: its nodes are gone, or a provider refuses its
// calls.
func TestAStoppedPolicyContinuesWithoutAnExhaustedNode(t *testing.T) {
	const two = "- name: gpu\n  match: ['remediation=\"gpu\"']\n  nodeSelector: {matchLabels: {pool: gpu}}\n  witness: none\n  plan: [{step: reboot, wait: 40m}]\n"
	failed := func(l *ledger.Ledger, policies ...string) {
		l.Status.Exhausted = map[string]int{}
		for _, p := range policies {
			l.Status.Exhausted[p] = ledger.FailingAfter
		}
	}
	waits := under("node-3", record("bbbbbb", remediations.PhasePending))
	const annotate = "choose a node that the policy repairs and that is not under repair, and run: kubectl annotate node NODE drydock.dev/reset=true"
	for name, c := range map[string]struct {
		node   *corev1.Node
		ledger func(*ledger.Ledger)
		policy string
		config string // added
		change func(objects []runtime.Object) []runtime.Object
		// on is the node that gets the reset. It is empty if the reset is refused.
		on, said string
	}{
		"its nodes are gone":  {node: node("node-3", nil), ledger: func(l *ledger.Ledger) { failed(l, "node-not-ready") }, on: "node-0", said: "Reset requested on node-0, which deletes no repair there: policy node-not-ready starts again. `kubectl drydock status` shows"},
		"a provider refuses":  {node: waits, ledger: func(l *ledger.Ledger) { l.Stop("node-not-ready", "the quota is reached") }, on: "node-0", said: "policy node-not-ready starts again"},
		"the nodes of a pool": {node: labelled(node("node-7", nil), "pool", "gpu"), policy: "gpu", config: two, ledger: func(l *ledger.Ledger) { failed(l, "gpu") }, on: "node-7", said: "policy gpu starts again"},
		"no other policy goes on with it": {
			node: labelled(node("node-0", nil), "pool", "gpu"), config: two, ledger: func(l *ledger.Ledger) { failed(l, "gpu", "node-not-ready") }, on: "node-1", said: "policy node-not-ready starts again",
		},
		"another goes on with it": {
			node: labelled(node("node-0", nil), "pool", "gpu"), policy: "gpu", config: two, ledger: func(l *ledger.Ledger) { failed(l, "gpu", "node-not-ready") }, on: "node-0", said: "policies gpu, node-not-ready start again",
		},
		"not where one is under repair":  {node: under("node-0", record("aaaaaa", remediations.PhaseVerifying)), ledger: func(l *ledger.Ledger) { failed(l, "node-not-ready") }, on: "node-1", said: "Reset requested on node-1"},
		"not where another one is spent": {node: exhausted("node-0", "cccccc", "other"), ledger: func(l *ledger.Ledger) { failed(l, "node-not-ready") }, on: "node-1", said: "Reset requested on node-1"},
		"first where it has run out":     {node: exhausted("node-4", "cccccc", "node-not-ready"), ledger: func(l *ledger.Ledger) { failed(l, "node-not-ready") }, on: "node-4", said: "Reset requested: Drydock deletes the exhausted repair cccccc on node-4"},
		"no node is of it":               {node: node("node-3", nil), policy: "gpu", config: two, ledger: func(l *ledger.Ledger) { failed(l, "gpu") }, said: "policy gpu is stopped, no node has an exhausted repair by it, and there is no node whose reset starts it again now; " + annotate},
		"the configuration is not readable": {
			node: node("node-3", nil), ledger: func(l *ledger.Ledger) { failed(l, "node-not-ready") },
			change: func(o []runtime.Object) []runtime.Object { return append(o[:1:1], o[2:]...) },
			said:   "it is unknown which nodes it repairs, because Drydock's configuration could not be read; " + annotate,
		},
		"there is no node": {
			node: node("node-3", nil), ledger: func(l *ledger.Ledger) { failed(l, "node-not-ready") },
			change: func(o []runtime.Object) []runtime.Object { return o[:2] }, said: "and the cluster has no node; " + annotate,
		},
		"it is not stopped": {node: node("node-3", nil), said: "no node has an exhausted repair by policy node-not-ready, and the policy is not stopped; `kubectl drydock status` shows which policies are stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := calmLedger()
			if c.ledger != nil {
				c.ledger(l)
			}
			objects := fleetOf(c.node)
			objects[0], objects[1] = ledgerOf(l), installedWith(whyConfig+c.config)
			if c.change != nil {
				objects = c.change(objects)
			}
			d := newDesk(t, objects...)
			policy := c.policy
			if policy == "" {
				policy = "node-not-ready"
			}
			code, stdout, stderr := d.run("reset", "--policy", policy)
			if c.on == "" {
				require.Equal(t, cli.ExitFailed, code)
				require.Contains(t, stderr, c.said)
				require.Empty(t, d.patches())
				return
			}
			require.Equal(t, cli.ExitOK, code, stderr)
			require.Contains(t, stdout, c.said)
			require.Len(t, d.patches(), 1)
			require.Equal(t, c.on, d.patches()[0].Name)
			require.Equal(t, "true", d.node(c.on).Annotations[remediations.ResetKey])
		})
	}
}

// TestEachOfferedRemediationIsAccepted, where everything has a provider.
func TestEachOfferedRemediationIsAccepted(t *testing.T) {
	c := &remediations.Config{Provided: map[string]bool{}}
	var taken []string
	for name := range remediations.Shipped() {
		c.Provided[name] = true
	}
	for name := range remediations.Shipped() {
		if _, err := c.ParseRequest(remediations.RequestRemediation + name); err == nil {
			taken = append(taken, name)
		}
	}
	require.ElementsMatch(t, taken, actions.NodeRemediations())
	require.NotContains(t, taken, "drain", "the control")
}

// TestAResetAcceptsFewerGPUsOnANodeWithoutARepair: only the ledger shows what there is to reset.
func TestAResetAcceptsFewerGPUsOnANodeWithoutARepair(t *testing.T) {
	const nothing = "there is nothing to reset on node-3: it has no exhausted repair and no unreadable record"
	for name, c := range map[string]struct {
		had    int
		args   []string
		change func([]runtime.Object) []runtime.Object
		said   string
		writes bool
	}{
		"fewer GPUs":                        {had: 8, said: "Reset requested on node-3: Drydock expects 7 GPUs of the machine from now on, not 8. `kubectl drydock status`", writes: true},
		"the control: as many GPUs":         {had: 7, said: nothing + "\n"},
		"a repair was named":                {had: 8, args: []string{"aaaaaa"}, said: nothing + "\n"},
		"the ledger is not readable":        {had: 8, change: func(o []runtime.Object) []runtime.Object { return o[1:] }, said: nothing + "; it is unknown whether the ledger has something to reset, because it could not be read: "},
		"the configuration is not readable": {had: 8, change: func(o []runtime.Object) []runtime.Object { return append(o[:1:1], o[2:]...) }, said: "because Drydock's configuration could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := labelled(node("node-3", nil), signs.GPUCountLabel, "7")
			n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("7")}
			l := calmLedger()
			l.GPUs = map[string]int{ledger.GPUMachine(n): c.had}
			objects := fleetOf(n)
			objects[0] = ledgerOf(l)
			if c.change != nil {
				objects = c.change(objects)
			}
			d := newDesk(t, objects...)
			code, stdout, stderr := d.run(append([]string{"reset", "node-3"}, c.args...)...)
			require.Contains(t, stdout+stderr, c.said)
			require.Equal(t, c.writes, code == cli.ExitOK)
			require.Equal(t, c.writes, d.node("node-3").Annotations[remediations.ResetKey] == "true")
		})
	}
}
