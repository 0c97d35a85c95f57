package clusterapi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// holdCase creates one state that forbids a replacement.
type holdCase struct {
	make      func(*world)
	says      string
	fleetwide bool
	soon      bool // it passes by itself
}

func annotation(kind, name, key, value string) func(*world) {
	return func(w *world) { w.Patch(kind, name, m{"metadata": m{"annotations": m{key: value}}}) }
}

func machineSays(of ...any) func(*world) {
	return func(w *world) { w.Patch("Machine", "one", m{"status": m{"conditions": of}}, "status") }
}

var holdCases = map[string]holdCase{
	"Cluster paused":     {func(w *world) { w.Patch("Cluster", "prod", m{"spec": m{"paused": true}}) }, "Cluster NS/prod is paused", true, false},
	"Cluster marked":     {annotation("Cluster", "prod", pausedKey, ""), "Cluster NS/prod is paused", true, false},
	"Cluster being gone": {func(w *world) { w.going("Cluster", "prod") }, "Cluster NS/prod is being deleted", true, false},
	"connection lost": {func(w *world) {
		w.clusterSays(condition("RemoteConnectionProbe", "False", "RemoteConnectionProbeFailed", "no answer"))
	}, `has lost its connection to the Nodes of Cluster NS/prod, so its data about them may be old: RemoteConnectionProbe is False, RemoteConnectionProbeFailed, "no answer"`, true, true},
	"no Cluster":           {func(w *world) { w.Delete("Cluster", "prod") }, "Cluster NS/prod does not exist; correct providers.clusterAPI.cluster", true, false},
	"Machine being gone":   {func(w *world) { w.going("Machine", "one") }, "Machine NS/one is already being deleted", false, true},
	"Machine paused":       {annotation("Machine", "one", pausedKey, ""), "Machine NS/one is paused (annotation cluster.x-k8s.io/paused)", false, false},
	"skip-remediation":     {annotation("Machine", "one", skipKey, ""), "Machine NS/one must not be replaced (annotation cluster.x-k8s.io/skip-remediation)", false, false},
	"asked for already":    {annotation("Machine", "one", remediateKey, "anna"), `is already requested (annotation cluster.x-k8s.io/remediate-machine, value "anna")`, false, false},
	"unhealthy already":    {machineSays(condition(healthy, "False", "UnhealthyNode", "Ready is False")), `Machine NS/one is already marked as unhealthy: HealthCheckSucceeded is False, UnhealthyNode, "Ready is False"`, false, true},
	"owner has begun":      {machineSays(condition(ownerRemedied, "False", "RemediationDeferred", "later")), `Machine NS/one is already being replaced: OwnerRemediated is False, RemediationDeferred, "later"`, false, true},
	"external remediation": {machineSays(condition(elseRemedied, "False", "WaitingForRemediation", "")), "Machine NS/one is being repaired by an external remediation", false, true},
	"two Nodes of one ID":  {machineSays(condition(nodeHealthy, "Unknown", "InternalError", "two Nodes")), `Cluster API cannot distinguish Machine NS/one from the Machine of another Node: NodeHealthy is Unknown, InternalError, "two Nodes"`, false, false},
	"pre-drain hook":       {annotation("Machine", "one", preDrainHook+"/backup", "x"), `Machine NS/one has a hook that would block its deletion (annotation "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup")`, false, false},
	"pre-terminate hook":   {annotation("Machine", "one", preTerminate, "x"), `Machine NS/one has a hook that would block its deletion (annotation "pre-terminate.delete.hook.machine.cluster.x-k8s.io")`, false, false},
	"control plane":        {func(w *world) { w.Patch("Machine", "one", m{"metadata": m{"labels": m{controlLabel: ""}}}) }, "Machine NS/one belongs to the control plane, and Drydock never replaces control-plane machines", false, false},
	"stand-alone":          {func(w *world) { w.Patch("Machine", "one", m{"metadata": m{"ownerReferences": nil}}) }, "Machine NS/one has no owner, so no new Machine would be made", false, false},
	"another owner": {func(w *world) {
		w.owner("Machine", "one", "controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "kcp", "u")
	}, "Machine NS/one belongs to KubeadmControlPlane kcp; Drydock replaces only Machines of a MachineSet", false, false},
	"owner's namesake":    {func(w *world) { w.owner("Machine", "one", apiVersion, "MachineSet", "pool", "u") }, "MachineSet pool, the owner of Machine NS/one, no longer exists", false, false},
	"owner gone":          {func(w *world) { w.Delete("MachineSet", "pool") }, "MachineSet pool, the owner of Machine NS/one, no longer exists", false, false},
	"MachineSet going":    {func(w *world) { w.going("MachineSet", "pool") }, "MachineSet NS/pool is being deleted", false, false},
	"MachineSet paused":   {annotation("MachineSet", "pool", pausedKey, ""), "MachineSet NS/pool is paused", false, false},
	"MachineSet makes no": {annotation("MachineSet", "pool", noMachineKey, ""), "MachineSet NS/pool makes no new Machines", false, false},
	"scaled down":         {func(w *world) { w.Patch("MachineSet", "pool", m{"spec": m{"replicas": 1}}) }, "MachineSet NS/pool should have 1 Machines and has 2, so it would make no new one", false, true},
	"deployment paused":   {func(w *world) { w.deployment("1", true) }, "MachineDeployment NS/deployment is paused", false, false},
	"as many in flight as are allowed": {func(w *world) {
		w.deployment("1", false)
		w.Patch("MachineDeployment", "deployment", m{"spec": m{"remediation": m{"maxInFlight": 1}}})
		w.going("Machine", "ten")
	}, "MachineDeployment NS/deployment allows 1 remediations at a time (spec.remediation.maxInFlight), and Machine NS/ten is being replaced", false, true},
	"a share in flight, and one is asked for": {func(w *world) {
		w.deployment("1", false)
		w.Patch("MachineDeployment", "deployment", m{"spec": m{"remediation": m{"maxInFlight": "30%"}}})
		w.Patch("Machine", "ten", m{"status": m{"conditions": []any{condition(ownerRemedied, "False", "WaitingForRemediation", "")}}}, "status")
	}, "MachineDeployment NS/deployment allows 1 remediations at a time (spec.remediation.maxInFlight), and Machine NS/ten is being replaced", false, true},
	"none may be in flight": {func(w *world) {
		w.deployment("1", false)
		w.Patch("MachineDeployment", "deployment", m{"spec": m{"remediation": m{"maxInFlight": 0}}})
	}, "MachineDeployment NS/deployment allows no remediation (spec.remediation.maxInFlight is 0)", false, false},
	"health check has none left": {func(w *world) {
		w.check("a", nil)
		w.Patch("MachineHealthCheck", "a", m{"status": m{"remediationsAllowed": 0, "conditions": []any{condition("RemediationAllowed", "True", "RemediationAllowed", "")}}}, "status")
	}, "MachineHealthCheck NS/a allows no further remediation now (status.remediationsAllowed is 0", false, true},
	"updated in place": {machineSays(condition("Updating", "True", "InPlaceUpdating", "installing")), `Machine NS/one is being updated in place: Updating is True, InPlaceUpdating, "installing"`, false, true},
	"in-place update begins": {annotation("Machine", "one", "in-place-updates.internal.cluster.x-k8s.io/update-in-progress", ""),
		"Machine NS/one is being updated in place (annotation in-place-updates.internal.cluster.x-k8s.io/update-in-progress)", false, true},
	"moved for an in-place update": {annotation("Machine", "one", "in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move", ""),
		"Machine NS/one is being updated in place (annotation in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move)", false, true},
	"in-place update is asked for": {annotation("Machine", "one", "runtime.cluster.x-k8s.io/pending-hooks", "BeforeClusterUpgrade,UpdateMachine"),
		"Machine NS/one is being updated in place (annotation runtime.cluster.x-k8s.io/pending-hooks)", false, true},
	"old revision":      {func(w *world) { w.deployment("2", false) }, "MachineSet NS/pool is an old revision of MachineDeployment NS/deployment", false, true},
	"two health checks": {func(w *world) { w.check("a", nil); w.check("b", nil) }, "MachineHealthCheck NS/a and MachineHealthCheck NS/b both select Machine NS/one", false, false},
	"external template": {func(w *world) {
		w.check("a", m{"remediation": m{"templateRef": m{"apiVersion": "metal3.io/v1", "kind": "Metal3RemediationTemplate", "name": "r"}}})
	}, `MachineHealthCheck NS/a has the remediation template "Metal3RemediationTemplate r"`, false, false},
	"health check paused": {func(w *world) { w.check("a", nil); annotation("MachineHealthCheck", "a", pausedKey, "")(w) }, "MachineHealthCheck NS/a is paused", false, false},
	"short circuit": {func(w *world) {
		w.check("a", nil)
		w.Patch("MachineHealthCheck", "a", m{"status": m{"conditions": []any{condition("RemediationAllowed", "False", "TooManyUnhealthy", "2 of 2")}}}, "status")
	}, `MachineHealthCheck NS/a allows no remediation now: RemediationAllowed is False, TooManyUnhealthy, "2 of 2"`, false, true},
}

// TestEachHoldIsNamedBeforeTheIntent: with its object, and with what it concerns. Without the hold
// the same Machine is replaced.
func TestEachHoldIsNamedBeforeTheIntent(t *testing.T) {
	ready := build(t, len(holdCases), nil)
	for name, c := range holdCases {
		t.Run(name, func(t *testing.T) {
			w := <-ready
			w.T = t
			r := w.replacer(nil)
			deleting := w.replacer(func(o *Options) { o.WithoutHealthCheck = deletes(true) })
			control := r.Survey(t.Context(), node1)
			require.Empty(t, control.Trouble, "the control")
			require.NotEmpty(t, control.Before)
			c.make(w)
			was := w.asked()
			said := r.Survey(t.Context(), node1)
			want := w.named(c.says)
			require.Contains(t, said.Trouble, want)
			require.Contains(t, said.Trouble, `the Machine of node "node-1": `)
			require.Empty(t, said.Before)
			require.Equal(t, c.fleetwide, said.Fleetwide)
			require.Equal(t, c.soon, said.Again == remediations.AskPassing, said.Again)
			late := node1
			late.Before = control.Before
			outcome, err := r.Act(t.Context(), late, func() error { return nil })
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, want)
			outcome, err = deleting.Act(t.Context(), late, func() error { return nil })
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, want, "withoutHealthCheck: delete")
			require.Equal(t, was, w.asked(), "nothing was asked for")
		})
	}
}

// TestAllHoldsAreNamedAtOnce, so that a person does not find the second only after correcting the
// first.
func TestAllHoldsAreNamedAtOnce(t *testing.T) {
	w := newWorld(t)
	holdCases["skip-remediation"].make(w)
	holdCases["Cluster paused"].make(w)
	holdCases["MachineSet paused"].make(w)
	said := w.replacer(nil).Survey(t.Context(), node1)
	for _, name := range []string{"skip-remediation", "Cluster paused", "MachineSet paused"} {
		require.Contains(t, said.Trouble, w.named(holdCases[name].says))
	}
	require.True(t, said.Fleetwide)
	require.Equal(t, remediations.AskMended, said.Again)
}

// TestWhatLooksLikeAHoldAndIsNone: these states do not hold.
func TestWhatLooksLikeAHoldAndIsNone(t *testing.T) {
	cases := map[string]func(*world){
		"an external remediation that is over": machineSays(condition(healthy, "True", "HealthCheckSucceeded", ""), condition(elseRemedied, "False", "WaitingForRemediation", "")),
		"the Node is lost":                     machineSays(condition(nodeHealthy, "Unknown", "ConnectionDown", "")),
		"the newest revision":                  func(w *world) { w.deployment("1", false) },
		"an in-place update that is over":      machineSays(condition("Updating", "False", "NotUpdating", "")),
		"other hooks are pending":              annotation("Machine", "one", "runtime.cluster.x-k8s.io/pending-hooks", "BeforeClusterUpgrade"),
		"fewer are in flight than may be": func(w *world) {
			w.deployment("1", false)
			w.Patch("MachineDeployment", "deployment", m{"spec": m{"remediation": m{"maxInFlight": 2}}})
			w.going("Machine", "ten")
		},
		"a health check with one left": func(w *world) {
			w.check("a", nil)
			w.Patch("MachineHealthCheck", "a", m{"status": m{"remediationsAllowed": 1}}, "status")
		},
		"a health check of others":          func(w *world) { w.check("a", m{"selector": m{"matchLabels": m{"pool": "b"}}}); holdOf(w, "a") },
		"a health check of another Cluster": func(w *world) { w.check("a", m{"clusterName": "test"}); holdOf(w, "a") },
		"a Machine of another Cluster": func(w *world) {
			w.Create("Machine", "other", nil, template(m{"providerID": "lab://1", "clusterName": "test"}), m{"nodeRef": m{"name": "node-1"}})
		},
		"another Machine's hold": func(w *world) { annotation("Machine", "ten", skipKey, "")(w) },
	}
	ready := build(t, len(cases), nil)
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w := <-ready
			w.T = t
			change(w)
			require.Empty(t, w.replacer(nil).Survey(t.Context(), node1).Trouble)
		})
	}
}

func holdOf(w *world, check string) { annotation("MachineHealthCheck", check, pausedKey, "")(w) }
