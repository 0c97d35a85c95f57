package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// remediators is the namespace of the remediators' templates and objects.
const remediators = "remediators"

// external is the step that asks SelfNodeRemediation.
func external(wait string) map[string]any {
	return byRemediator("SelfNodeRemediation", remediators, wait)
}

// templates are the remediators' templates, by the kind of the object that is made from them.
var templates = map[string]map[string]any{
	"SelfNodeRemediation":    {"remediationStrategy": "Automatic"},
	"FenceAgentsRemediation": {"agent": "fence_ipmilan", "sharedparameters": map[string]any{"--lanplus": ""}},
	"Metal3Remediation":      {"strategy": map[string]any{"type": "Reboot", "retryLimit": int64(1), "timeout": "300s"}},
}

// byRemediator returns the step that asks the remediator of that kind, with its template in that
// namespace.
func byRemediator(kind, namespace, wait string) map[string]any {
	return map[string]any{"step": "external", "wait": wait, "attempts": 1, "template": map[string]any{
		"apiVersion": lab.Remediations[kind].String(), "kind": kind + "Template", "namespace": namespace, "name": "own",
	}}
}

var kindsOfRemediators sync.Once

// objects returns a client for the remediation objects of that kind. It creates the kinds and the
// templates.
func (y *yard) objects(kind, namespace string) dynamic.ResourceInterface {
	y.t.Helper()
	client, err := dynamic.NewForConfig(y.lab.AdminConfig())
	require.NoError(y.t, err)
	kindsOfRemediators.Do(func() {
		require.NoError(y.t, y.lab.AddRemediatorKinds(context.WithoutCancel(y.t.Context())))
		for kind, spec := range templates {
			of, where := lab.Remediations[kind], remediators
			if kind == "Metal3Remediation" {
				where = metal3
			}
			_, err := client.Resource(of.WithResource(strings.ToLower(kind)+"templates")).Namespace(where).Create(y.t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": of.String(), "kind": kind + "Template", "metadata": map[string]any{"name": "own"},
				"spec": map[string]any{"template": map[string]any{"spec": spec}},
			}}, metav1.CreateOptions{})
			require.NoError(y.t, err)
		}
	})
	return client.Resource(lab.Remediations[kind].WithResource(strings.ToLower(kind) + "s")).Namespace(namespace)
}

// remediator simulates a remediator for these nodes.
func (y *yard) remediator(o lab.RemediatorOptions, nodes ...string) (*lab.Remediator, dynamic.ResourceInterface) {
	y.t.Helper()
	objects := y.objects(cmp.Or(o.Kind, "SelfNodeRemediation"), remediators)
	for _, node := range nodes {
		y.annotate(node, "is-reboot-capable.self-node-remediation.medik8s.io", "true")
	}
	r, err := y.lab.StartRemediator(y.t.Context(), o)
	require.NoError(y.t, err)
	return r, objects
}

// remediating returns a configuration whose plan begins with the given step, by node, and continues
// with the provider's reset.
func remediating(first map[string]map[string]any) lab.DrydockOptions {
	var policies []any
	for node, step := range first {
		policies = append(policies, for1(node, resets(step, reset(patience))))
	}
	return lab.DrydockOptions{Config: map[string]any{
		"providers": map[string]any{"external": map[string]any{}}, "limits": map[string]any{"concurrent": 2, "startupGrace": "0s"}, "policies": policies,
	}}
}

func (y *yard) noneLeft(objects dynamic.ResourceInterface, nodes ...string) {
	y.t.Helper()
	for _, node := range nodes {
		require.Eventually(y.t, func() bool {
			_, err := objects.Get(y.t.Context(), node, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, lab.Patience, 100*time.Millisecond, "the object about %s is deleted", node)
	}
}

// The whole chain: alert, witness, intent, the remediation object, a machine that comes back with a
// new boot ID, and the deletion of the object. A remediator that does nothing is informed that it
// has timed out, and the plan continues.
func TestARemediatorRebootsTheMachine(t *testing.T) {
	y := newYard(t)
	r, objects := y.remediator(lab.RemediatorOptions{Idle: []string{"node-68"}}, "node-67", "node-68")
	y.run(remediating(map[string]map[string]any{"node-67": external(patience), "node-68": external("5s")}))
	before := y.node("node-67").Status.NodeInfo.BootID

	y.fail("node-67")
	y.fail("node-68")
	e, f := y.ended("node-67"), y.ended("node-68")
	y.noneLeft(objects, "node-67", "node-68") // the remediator has handled both objects

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"external:1"}, e.Steps.Texts())
	require.NotEqual(t, before, y.node("node-67").Status.NodeInfo.BootID)
	require.Equal(t, []string{e.ID + "-0-1"}, attempts(r.Rebooted()))
	require.Equal(t, remediations.OutcomeRecovered, f.Outcome, f.Why)
	require.Equal(t, []string{"external:1", "reboot:1"}, f.Steps.Texts())
	require.Equal(t, []string{f.ID + "-0-1"}, attempts(r.Stopped()))
	require.Len(t, y.civo.Done(civosim.Any), 1)
}

// FenceAgentsRemediation has the same contract, with its own kind and spec, the Node's name, and
// its conditions. Its taint on the Node does not count as another system's mark while Drydock waits
// for it. The taint is removed with the object.
func TestFenceAgentsRemediationRebootsTheMachine(t *testing.T) {
	const node = "node-45"
	y := newYard(t)
	r, objects := y.remediator(lab.RemediatorOptions{Kind: "FenceAgentsRemediation"})
	w, err := objects.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	y.run(remediating(map[string]map[string]any{node: byRemediator("FenceAgentsRemediation", remediators, patience)}))
	before := y.node(node)

	y.fail(node)
	e := y.ended(node)
	y.noneLeft(objects, node)

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"external:1"}, e.Steps.Texts())
	require.NotEqual(t, before.Status.NodeInfo.BootID, y.node(node).Status.NodeInfo.BootID)
	require.Equal(t, []string{e.ID + "-0-1"}, attempts(r.Rebooted()))
	require.Empty(t, y.civo.Done(civosim.Any))
	made := (<-w.ResultChan()).Object.(*unstructured.Unstructured)
	require.Equal(t, "FenceAgentsRemediation", made.GetKind())
	require.Equal(t, node, made.GetName())
	require.Equal(t, node, made.GetAnnotations()["remediation.medik8s.io/node-name"])
	agent, _, _ := unstructured.NestedString(made.Object, "spec", "agent")
	require.Equal(t, "fence_ipmilan", agent)
	for _, taint := range y.node(node).Spec.Taints {
		require.NotEqual(t, lab.FenceAgentsTaint, taint.Key, "the deletion undoes it")
	}
}

// A Metal3Remediation has the name of the Node's Machine and is owned by the Machine: only by that
// its controller finds the host. It has a phase and no conditions, and does not read that it has
// timed out. If the controller does nothing, the object is still deleted, and the plan continues.
func TestMetal3RemediationRebootsTheMachine(t *testing.T) {
	y := newYard(t)
	for _, node := range []string{"metal-r", "metal-idle"} {
		y.bareMetal(node)
	}
	objects := y.objects("Metal3Remediation", metal3)
	rebooted, err := y.lab.StartMetal3Remediator(t.Context(), metal3, "metal-idle")
	require.NoError(t, err)
	o := remediating(map[string]map[string]any{
		"metal-r": byRemediator("Metal3Remediation", metal3, patience), "metal-idle": byRemediator("Metal3Remediation", metal3, "5s"),
	})
	o.Config["providers"].(map[string]any)["annotation"] = byAnnotation()
	y.run(o)
	before := y.node("metal-r").Status.NodeInfo.BootID

	y.fail("metal-r")
	y.fail("metal-idle")
	e, f := y.ended("metal-r"), y.ended("metal-idle")
	y.noneLeft(objects, "machine-metal-r", "machine-metal-idle")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"external:1"}, e.Steps.Texts())
	require.NotEqual(t, before, y.node("metal-r").Status.NodeInfo.BootID)
	require.Equal(t, []string{e.ID + "-0-1"}, attempts(rebooted()))
	require.Equal(t, remediations.OutcomeRecovered, f.Outcome, f.Why)
	require.Equal(t, []string{"external:1", "reboot:1"}, f.Steps.Texts())
}

// A remediator's Succeeded=True proves nothing. If the machine has not booted, the repair has not
// ended, and the plan continues. The new boot ID of the next step proves the cure. A machine that
// becomes healthy without a boot has recovered by itself, even if a remediator claims the success.
// The control: the same condition for a machine that has booted.
func TestSucceededDoesNotProveARepair(t *testing.T) {
	const claimed, well, booted = "node-46", "node-48", "node-47"
	y := newYard(t)
	r, objects := y.remediator(lab.RemediatorOptions{Claims: []string{claimed, well}}, claimed, well, booted)
	o := remediating(map[string]map[string]any{claimed: external("10s"), well: external("75s"), booted: external(patience)})
	o.Config["limits"].(map[string]any)["concurrent"] = 3
	y.run(o)
	before := map[string]string{}
	for _, node := range []string{claimed, well} {
		before[node] = y.node(node).Status.NodeInfo.BootID
		y.fail(node)
	}
	y.fail(booted)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(r.Claimed(), func(attempt string) bool { return attempt == y.attempt(well) })
	}, lab.Patience, 100*time.Millisecond, "the remediator says so")
	require.NoError(t, y.lab.Heal(t.Context(), well, ""))

	e, w, f := y.ended(claimed), y.ended(well), y.ended(booted)
	y.noneLeft(objects, claimed, well, booted)
	require.ElementsMatch(t, []string{e.ID + "-0-1", w.ID + "-0-1"}, attempts(r.Claimed()))
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"external:1", "reboot:1"}, e.Steps.Texts())
	require.NotEqual(t, before[claimed], y.node(claimed).Status.NodeInfo.BootID)
	require.Equal(t, 1, y.reboots(claimed))
	require.Equal(t, remediations.OutcomeSelfRecovered, w.Outcome, w.Why)
	require.Equal(t, []string{"external:1"}, w.Steps.Texts())
	require.Equal(t, before[well], y.node(well).Status.NodeInfo.BootID)
	require.Equal(t, remediations.OutcomeRecovered, f.Outcome, f.Why)
	require.Equal(t, []string{"external:1"}, f.Steps.Texts())
	require.Len(t, y.civo.Done(civosim.Any), 1)
}

// attempts returns the attempts of these intents. An intent's ID is repair-step-attempt. It has a
// fourth part if the attempt was given back and is made again.
func attempts(intents []string) (out []string) {
	for _, id := range intents {
		out = append(out, strings.Join(strings.Split(id, "-")[:3], "-"))
	}
	return out
}

// attempt returns the node's attempt that is under way. It is empty if there is none.
func (y *yard) attempt(node string) string {
	r := remediations.ReadJournal(y.node(node)).Record
	if r == nil || r.Intent == nil {
		return ""
	}
	return r.Intent.ID
}

// Whatever happens to the request that creates the object, the machine is rebooted by one object,
// and the object is deleted.
func TestAFaultLeavesOneObject(t *testing.T) {
	aFaultLeavesOneRequest(t, func(y *yard, _ string) requested {
		const node = "node-69"
		r, objects := y.remediator(lab.RemediatorOptions{}, node)
		return requested{
			node: node, config: remediating(nil), step: external, rebooted: r.Rebooted,
			asks: func(in *http.Request, _ []byte) bool {
				return in.Method == http.MethodPost && strings.HasSuffix(in.URL.Path, "/selfnoderemediations")
			},
			ended: func(e remediations.Entry, made int) {
				y.noneLeft(objects, node)
				require.Equal(y.t, []string{fmt.Sprintf("%s-%d-1", e.ID, made-1)}, attempts(r.Rebooted()))
			},
		}
	})
}
