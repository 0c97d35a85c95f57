package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

// storm is a fleet with one of everything that status can say.
func storm() []runtime.Object {
	l := calmLedger()
	l.Slots = []ledger.Slot{
		{Node: "node-1", Policy: "node-not-ready", Repair: "aaaaaa", Attempt: "aaaaaa-1-1", Zone: "fra1", Pool: "gpu", Since: now.Add(-3 * time.Minute)},
		{Kind: remediations.KindLocation, Node: "node-8", Successor: "node-10", Location: "fra1", Policy: "mesh-leader-degraded", Repair: "eeeeee", Attempt: "eeeeee-0-1", Zone: "fra1", Since: now.Add(-time.Minute)},
	}
	l.Status.Breakers = map[string]ledger.Breaker{
		"cluster":   {State: ledger.BreakerHalfOpen, Since: now.Add(-10 * time.Minute), Unhealthy: 4, Nodes: 20, Quiet: now, Trial: "aaaaaa"},
		"zone/fra2": {State: ledger.BreakerOpen, Since: now.Add(-time.Hour), Unhealthy: 3, Nodes: 6, Quiet: now.Add(-time.Minute)},
	}
	l.Status.Blind = "no Alertmanager has shown the Watchdog alert for 3 polls"
	l.Status.SelfTest = selftest.Result{State: selftest.Unrouted, Message: "Alertmanager has the alert {alertname=\"DrydockSelfTest\"}, but routes it to \"pager\" and not to \"drydock\" (alertmanager.receiver)", Since: now.Add(-2 * time.Minute)}
	l.Status.Stopped = map[string]string{"node-disk-pressure": "Civo says that the quota is reached"}
	l.Status.Sidecars = map[string]string{"sei/rpc-0": "n7"}
	gone, err := remediations.DecodeRecord(record("ffffff", remediations.PhaseActing, func(r *remediations.Record) { r.Step = remediations.StepRef{Index: 2, Name: "replace", Attempt: 1} }).Encode())
	if err != nil {
		panic(err)
	}
	l.Orphans = []ledger.Orphan{{Node: "node-9", UID: "uid-9", ProviderID: "civo://9", Record: *gone}}
	l.Status.Exhausted = map[string]int{"gpu-node-not-ready": 3, "node-not-ready": 1}
	l.Status.Holds = map[remediations.Reason]string{
		remediations.ReasonAtLimit:       "repairs under way in the cluster: 1 of at most 1 (node-1); limits.concurrent is 1",
		remediations.ReasonOutsideWindow: "outside all of the configured windows",
	}
	l.Status.BreakGlass = map[string]ledger.BreakGlass{"node-5": {Since: now.Add(-20 * time.Minute), Why: "swapping a disk"}}
	malformed := node("node-6", map[string]string{remediations.NodeRepairKey: `{"v":2,"id":"zzzzzz"}`})
	malformed.Labels[remediations.PhaseLabel] = "Acting"
	bare := node("node-7", nil)
	bare.Labels[remediations.PhaseLabel] = "Verifying"
	leader := node("node-8", map[string]string{remediations.RepairPrefix + "leader": record("eeeeee", remediations.PhaseActing, func(r *remediations.Record) {
		r.Step.Name, r.Policy, r.Location, r.Intent.Successor = "promote-leader", "mesh-leader-degraded", "fra1", "node-10"
		r.Moves = []remediations.Move{{Location: "fra1", From: "node-8", To: "node-10", Before: map[string]*string{"node-10": nil}}}
	}).Encode()})
	leader.Labels[remediations.PhaseLabel] = "Acting"
	return []runtime.Object{
		ledgerOf(l),
		node("node-0", nil),
		under("node-1", record("aaaaaa", remediations.PhaseVerifying)),
		under("node-2", record("bbbbbb", remediations.PhasePending, held(remediations.ReasonSilenced, "silenced by 8a1 (alice: disk swap), until 2026-11-20T22:00:00Z; the repair continues when that ends", now.Add(55*time.Minute)))),
		under("node-3", record("cccccc", remediations.PhaseExhausted, func(r *remediations.Record) { r.Began = now.Add(-26 * time.Hour) })),
		under("node-4", record("dddddd", remediations.PhasePending, held(remediations.ReasonAwaitingApproval, "policy node-not-ready needs a person's approval", time.Time{}), func(r *remediations.Record) {
			r.Cause = remediations.Cause{Request: "remediation/reboot"}
		})),
		malformed, bare, leader,
	}
}

// TestThePageShowsTheStatusThatIsPrinted, line by line.
func TestThePageShowsTheStatusThatIsPrinted(t *testing.T) {
	_, stdout, _ := newDesk(t, storm()...).run("status")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "kubectl-drydock.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "```console\n$ kubectl drydock status\n"+stdout+"```\n")
}

// TestStatusSaysWhatAReplacementLacks when its Node is gone.
func TestStatusSaysWhatAReplacementLacks(t *testing.T) {
	l := calmLedger()
	of := record("ffffff", remediations.PhaseActing, func(r *remediations.Record) { r.Step = remediations.StepRef{Name: "replace", Attempt: 1} })
	of.Note = "Pod default/db-0 has had no node since noon"
	l.Orphans = []ledger.Orphan{{Node: "node-9", UID: "uid-9", ProviderID: "civo://9", Record: *of}}
	_, stdout, _ := newDesk(t, ledgerOf(l)).run("status", "-o", "wide")
	require.Contains(t, stdout, "the Node is gone; Pod default/db-0 has had no node since noon")
}

func TestStatusShowsRepairsAndHolds(t *testing.T) {
	observe := calmLedger()
	observe.Status.Mode = remediations.ModeObserve
	cooldown := calmLedger()
	cooldown.Status.Limits = map[string]string{"concurrent": "10%", "stormCooldown": "10m"}
	cooldown.Status.Breakers = map[string]ledger.Breaker{"cluster": {State: ledger.BreakerOpen, Since: now, Unhealthy: 5, Nodes: 20, Quiet: now}}
	connected := calmLedger()
	connected.Arrival = now.Add(-3 * time.Minute)
	connected.Status.SelfTest = selftest.Result{State: selftest.OK, Message: "it arrives", Since: now.Add(-24 * time.Hour)}
	cut := calmLedger()
	cut.Arrival = now.Add(-20 * time.Minute)
	cut.Status.SelfTest = selftest.Result{State: selftest.NotArrived, Message: "it does not arrive", Since: now.Add(-9 * time.Minute)}
	old := calmLedger()
	old.Status = ledger.Status{}
	paused := under("node-1", record("aaaaaa", remediations.PhasePending, held(remediations.ReasonPaused, "paused", time.Time{})))
	paused.Annotations[remediations.PauseKey] = "true (\x1b[2J\nnode-9 is fine)"
	byPerson := func(name, key, value string) *corev1.Node { return node(name, map[string]string{key: value}) }
	excluded := node("node-4", nil)
	excluded.Labels[remediations.ExcludeLabel] = "true"
	pauses := []runtime.Object{
		ledgerOf(calmLedger()), node("node-0", nil), byPerson("node-1", remediations.PauseKey, "true disk swap"), byPerson("node-2", remediations.PauseKey, "2026-11-20T22:00:00Z ticket 12"),
		byPerson("node-3", remediations.PauseKey, "2026-11-20T20:00:00Z is over"), excluded, byPerson("node-5", remediations.BreakGlassKey, "true at the console"),
	}
	for name, c := range map[string]struct {
		objects []runtime.Object
		args    []string
	}{
		"status-paused":      {pauses, nil},
		"status-paused-json": {pauses, []string{"-o", "json"}},
		"status":             {storm(), nil},
		"status-wide":        {storm(), []string{"-o", "wide"}},
		"status-json":        {storm(), []string{"-o", "json"}},
		"status-yaml":        {storm(), []string{"-o", "yaml"}},
		"status-calm":        {[]runtime.Object{ledgerOf(calmLedger()), node("node-0", nil)}, nil},
		"status-calm-json":   {[]runtime.Object{ledgerOf(calmLedger())}, []string{"-o", "json"}},
		"status-observe":     {[]runtime.Object{ledgerOf(observe), under("node-1", record("aaaaaa", remediations.PhasePending, held(remediations.ReasonObserving, "would reboot node-1 now (policy node-not-ready, attempt 1); the mode is observe", time.Time{})))}, []string{"-o", "wide"}},
		"status-cooling":     {[]runtime.Object{ledgerOf(cooldown)}, nil},
		"status-connected":   {[]runtime.Object{ledgerOf(connected)}, nil},
		"status-not-arrived": {[]runtime.Object{ledgerOf(cut)}, nil},
		"status-no-limits":   {[]runtime.Object{ledgerOf(old)}, nil},
		"status-bad-ledger":  {[]runtime.Object{ledgerIn("ops", map[string]string{"v": "1", "slots": "[", "repairs": "{}", "status": "{}"}), under("node-1", record("aaaaaa", remediations.PhaseVerifying))}, nil},
		"status-new-ledger":  {[]runtime.Object{ledgerIn("ops", map[string]string{"v": "2"})}, nil},
		"status-no-ledger":   {[]runtime.Object{under("node-1", record("aaaaaa", remediations.PhaseVerifying))}, nil},
		"status-escape-code": {[]runtime.Object{ledgerOf(calmLedger()), paused}, []string{"-o", "wide"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := newDesk(t, c.objects...).run(append([]string{"status"}, c.args...)...)
			require.Equal(t, cli.ExitOK, code, stderr)
			require.Empty(t, stderr)
			require.NotContains(t, stdout, "\x1b")
			golden(t, name, stdout)
		})
	}
}

// TestStatusNamesTenPausedNodes, and counts the others. A Node whose break-glass the ledger has is
// not named twice.
func TestStatusNamesTenPausedNodes(t *testing.T) {
	l := calmLedger()
	l.Status.BreakGlass = map[string]ledger.BreakGlass{"node-00": {Why: "true", Since: now}}
	objects := []runtime.Object{ledgerOf(l), node("node-00", map[string]string{remediations.BreakGlassKey: "true"})}
	for i := range 12 {
		objects = append(objects, node(fmt.Sprintf("node-%02d", i+1), map[string]string{remediations.PauseKey: "true"}))
	}
	_, stdout, _ := newDesk(t, objects...).run("status")
	require.Contains(t, stdout, "Break-glass: node-00 has break-glass")
	require.NotContains(t, stdout, "node-00: ")
	require.Contains(t, stdout, "\nPaused:      node-01: paused (no reason was given)")
	require.Contains(t, stdout, "node-10: paused")
	require.NotContains(t, stdout, "node-11")
	require.Contains(t, stdout, "\n             and 2 more nodes: to see them, `kubectl drydock status --all`")
}

// TestLimitsCountADrainedNodeThatWaits: others are held on its account. As soon as its node takes
// pods again, it does not count.
func TestLimitsCountADrainedNodeThatWaits(t *testing.T) {
	parked := func(cordoned bool) *corev1.Node {
		n := under("node-1", record("aaaaaa", remediations.PhasePending, func(r *remediations.Record) {
			r.Done = remediations.Attempts{{Name: "drain", Number: 1}}
			r.Undo = []remediations.Undo{{Kind: remediations.UndoCordon, At: now.Add(-3 * time.Minute)}}
		}))
		n.Spec.Unschedulable = cordoned
		n.Labels[corev1.LabelTopologyZone] = "fra1"
		return n
	}
	_, stdout, _ := newDesk(t, ledgerOf(calmLedger()), parked(true)).run("status")
	require.Contains(t, stdout, "Limits:   cluster 1 of 1 (node-1 drained and waiting), zone fra1 1 of 1, breaker at 20% unhealthy\n")
	_, stdout, _ = newDesk(t, ledgerOf(calmLedger()), parked(false)).run("status")
	require.Contains(t, stdout, "Limits:   cluster 0 of 1, breaker at 20% unhealthy\n")
}

// TestStatusOfLeadersRecords: an unreadable record, or one of a version with other fields, has one
// word and hides no other row. An exhausted record says who leads now.
func TestStatusOfLeadersRecords(t *testing.T) {
	leader := func(name string, p remediations.Phase, change func(*remediations.Record)) *corev1.Node {
		r := record("a"+strings.Repeat(name[len(name)-1:], 5), p, func(r *remediations.Record) {
			r.Step, r.Policy, r.Location = remediations.StepRef{Name: "promote-leader", Attempt: 1}, "mesh-leader-degraded", "fra1"
			if r.Intent != nil {
				r.Done, r.Intent.Successor = remediations.Attempts{{Name: "promote-leader", Number: 1}}, "node-10"
				r.Moves = []remediations.Move{{Location: "fra1", From: name, To: "node-10", Before: map[string]*string{"node-10": nil}}}
			}
		})
		change(r)
		n := node(name, map[string]string{remediations.LocationKey: r.Encode()})
		n.Labels[remediations.PhaseLabel] = string(p)
		return n
	}
	nothing := func(*remediations.Record) {}
	text := node("node-7", map[string]string{remediations.LocationKey: "{"})
	text.Labels[remediations.PhaseLabel] = "Acting"
	older := node("node-8", map[string]string{remediations.LocationKey: record("eeeeee", remediations.PhaseActing).Encode()})
	older.Labels[remediations.PhaseLabel] = "Acting"
	misplaced := leader("node-9", remediations.PhaseActing, nothing)
	misplaced.Annotations = map[string]string{remediations.NodeRepairKey: misplaced.Annotations[remediations.LocationKey]}
	code, stdout, stderr := newDesk(t, ledgerOf(calmLedger()),
		leader("node-0", remediations.PhasePending, nothing),
		leader("node-1", remediations.PhaseVerifying, nothing),
		leader("node-2", remediations.PhaseExhausted, nothing),
		leader("node-3", remediations.PhaseExhausted, func(r *remediations.Record) {
			r.Undo = []remediations.Undo{{Kind: remediations.UndoLeader, Key: "node-10", At: now}}
		}),
		leader("node-4", remediations.PhaseActing, func(r *remediations.Record) { r.Location = "" }),
		leader("node-5", remediations.PhaseActing, func(r *remediations.Record) { r.Moves = nil }),
		leader("node-6", remediations.PhaseVerifying, func(r *remediations.Record) { r.Moves[0].Location = "" }),
		text, older, misplaced,
	).run("status", "-o", "wide")
	require.Equal(t, cli.ExitOK, code, stderr)
	golden(t, "status-leaders", stdout)
}

func TestStatusInJSONAndYAMLHoldsTheRecordsThemselves(t *testing.T) {
	d := newDesk(t, storm()...)
	for format, parse := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
	} {
		_, stdout, _ := d.run("status", "-o", format)
		var s inspect.Status
		require.NoError(t, parse([]byte(stdout), &s))
		require.Equal(t, "Status", s.Kind)
		require.Equal(t, "node-1", s.Ledger.Slots[0].Node)
		require.Equal(t, "20%", s.Ledger.Status.Limits["unhealthy"])
		found := map[string]inspect.Repair{}
		for _, r := range s.Repairs {
			found[r.Node] = r
		}
		require.Equal(t, record("aaaaaa", remediations.PhaseVerifying), found["node-1"].Record)
		require.Nil(t, found["node-6"].Record)
		require.Contains(t, found["node-6"].Problem, "version 2")
	}
}

func forbid(d *desk, verb, resource string) {
	d.cluster.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		if resource == "configmaps" && verb == "list" && a.GetNamespace() != "" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errNotYours(verb+" "+resource))
	})
}

type errNotYours string

func (e errNotYours) Error() string { return `User "dev" cannot ` + string(e) }

func TestTheLedgerIsFound(t *testing.T) {
	elsewhere := ledgerIn("ops", calmLedger().Encode())
	unlabelled := ledgerOf(calmLedger())
	unlabelled.Labels = nil
	renamed := ledgerIn("ops", calmLedger().Encode())
	renamed.Name = "second"
	for name, c := range map[string]struct {
		objects []runtime.Object
		args    []string
		forbid  bool
		want    string
	}{
		"by its labels, in any namespace":         {objects: []runtime.Object{elsewhere}, want: "ops/drydock-ledger"},
		"by -n where there are two":               {objects: []runtime.Object{elsewhere, ledgerOf(calmLedger())}, args: []string{"-n", "ops"}, want: "ops/drydock-ledger"},
		"by --ledger where there are two":         {objects: []runtime.Object{renamed, ledgerOf(calmLedger())}, args: []string{"--ledger", "second"}, want: "ops/second"},
		"by its name where somebody took labels":  {objects: []runtime.Object{unlabelled}, want: "drydock/drydock-ledger"},
		"in drydock where listing is forbidden":   {objects: []runtime.Object{ledgerOf(calmLedger())}, forbid: true, want: "drydock/drydock-ledger"},
		"by -n and --ledger, listing nothing":     {objects: []runtime.Object{renamed}, args: []string{"-n", "ops", "--ledger", "second"}, forbid: true, want: "ops/second"},
		"not another's, though it has the labels": {objects: []runtime.Object{renamed, unlabelled}, want: "drydock/drydock-ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.objects...)
			if c.forbid {
				forbid(d, "list", "configmaps")
			}
			code, stdout, stderr := d.run(append([]string{"status"}, c.args...)...)
			require.Equal(t, cli.ExitOK, code, stderr)
			require.Contains(t, stdout, "Ledger:   "+c.want+"\n")
		})
	}
}

func TestStatusRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		objects []runtime.Object
		forbid  [][2]string
		want    string
	}{
		"no Drydock":        {[]runtime.Object{node("node-0", nil)}, nil, "error: no Drydock was found: there is no ConfigMap drydock-ledger in namespace drydock, and no ConfigMap with the ledger's labels in any namespace, and no node has the label drydock.dev/phase; check that `drydock run` runs and leads; if its ledger is in another namespace or has another name, give -n and --ledger\n"},
		"another in charge": {[]runtime.Object{charge("ops/drydock")}, nil, "error: no ledger was found: there is no ConfigMap drydock-ledger in namespace drydock, and no ConfigMap with the ledger's labels in any namespace; the Drydock in namespace drydock is not in charge of the cluster; the one in namespace ops is: use -n ops"},
		"itself in charge":  {[]runtime.Object{charge("drydock/drydock")}, nil, "and no ConfigMap with the ledger's labels in any namespace, and no node"},
		"not in drydock":    {nil, [][2]string{{"list", "configmaps"}}, "error: no Drydock was found: there is no ConfigMap drydock-ledger in namespace drydock (you may not list ConfigMaps in all namespaces: give Drydock's namespace with -n), and no node has"},
		"two of them":       {[]runtime.Object{ledgerOf(calmLedger()), ledgerIn("ops", nil)}, nil, "error: there are several ledgers: drydock/drydock-ledger, ops/drydock-ledger; give the namespace of one with -n\n"},
		"nodes unreadable":  {nil, [][2]string{{"list", "nodes"}}, "error: listing the nodes was refused: nodes is forbidden: User \"dev\" cannot list nodes\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.objects...)
			for _, f := range c.forbid {
				forbid(d, f[0], f[1])
			}
			code, stdout, stderr := d.run("status")
			require.Equal(t, cli.ExitFailed, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			require.Regexp(t, `\A[^\n]+\n\z`, stderr, "one sentence")
		})
	}
}

// charge is the Lease of the installation that is in charge of the cluster.
func charge(holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "drydock"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
}

// Nodes are what people have a right to; the ledger lies in another's namespace.
func TestWhoMayNotReadTheLedgerSeesTheNodes(t *testing.T) {
	d := newDesk(t, ledgerOf(calmLedger()), under("node-1", record("aaaaaa", remediations.PhaseVerifying)))
	forbid(d, "list", "configmaps")
	forbid(d, "get", "configmaps")
	code, stdout, stderr := d.run("status")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "you may not read the ledger, so only the nodes are shown")
	require.Regexp(t, `node-1 +aaaaaa +node-not-ready +Verifying`, stdout)
}

// TestUnknownFieldsOfTheLedgerAreShown: a newer Drydock wrote them.
func TestUnknownFieldsOfTheLedgerAreShown(t *testing.T) {
	t.Parallel()
	l := calmLedger()
	objects := fleetOf(aged("node-3", corev1.ConditionTrue))
	objects[0] = ledgerOf(l)
	_, stdout, _ := newDesk(t, objects...).run("status")
	require.NotContains(t, stdout, "does not know", "the control")
	l.Others, l.Status.Unknown = map[string]string{"later": "1"}, `{"newer":1}`
	objects[0] = ledgerOf(l)
	_, stdout, _ = newDesk(t, objects...).run("status")
	require.Contains(t, stdout, "has fields that this plugin does not know: later, status.newer;")
}

// TestStatusNamesAMissingProviderBeforehand: status counts the nodes without the configuration.
// Like why, it names the provider of each step of a requested node.
func TestStatusNamesAMissingProviderBeforehand(t *testing.T) {
	t.Parallel()
	ledger := calmLedger()
	ledger.Status.Uncovered = map[string]coverage.Lack{"reboot": {Nodes: 7, First: "no provider serves Node node-2 for the step reboot"}}
	ledger.Status.Contested = []string{"two systems may repair the same node: NodeHealthCheck workers repairs 1 Node"}
	n := aged("node-3", corev1.ConditionTrue)
	objects := fleetOf(n)
	objects[0] = ledgerOf(ledger)
	for _, c := range []struct{ id, steps, never string }{
		{"civo://3", "reboot by civo", "reboot not possible"},
		{"aws:///3", "- reboot: no provider serves Node node-3 for the step reboot: its spec.providerID is \"aws:///3\"", "reboot by civo"},
	} {
		n.Spec.ProviderID = c.id
		desk := newDesk(t, objects...)
		_, stdout, _ := desk.run("status", "node-3")
		require.Contains(t, stdout, "Unserved: reboot: 7 nodes do not have exactly one provider for this step; the first: no provider serves Node node-2")
		require.Contains(t, stdout, "Steps:    node-3: ")
		require.Contains(t, stdout, c.steps)
		require.NotContains(t, stdout, c.never)
		_, why, _ := desk.run("why", "node-3")
		require.Contains(t, why, c.steps)
		require.NotContains(t, why, c.never)
		_, all, _ := desk.run("status")
		require.NotContains(t, all, "Steps:", "the configuration is read for nodes that are named")
		require.Contains(t, all, "Unserved: reboot: 7 nodes do not have exactly one provider for this step")
		require.Regexp(t, `Others: +two systems may repair the same node: NodeHealthCheck workers repairs`, all)
	}
	without := slices.DeleteFunc(slices.Clone(objects), func(o runtime.Object) bool { cm, is := o.(*corev1.ConfigMap); return is && cm.Name == "drydock" })
	_, stdout, _ := newDesk(t, without...).run("status", "node-3")
	require.Contains(t, stdout, "Steps:    unknown: Drydock's configuration: no ConfigMap of Drydock's chart has the key drydock.yaml; to see them: `kubectl drydock why NODE --config FILE`")
}
