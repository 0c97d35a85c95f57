package external

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// TestTheObjectFollowsTheContract: its kind, namespace, name, annotations and spec. A
// Metal3Remediation has the Machine's name, and the Machine as its owner.
func TestTheObjectFollowsTheContract(t *testing.T) {
	w := newWorld(t)
	r := w.remediator(nil)
	require.Empty(t, r.Survey(t.Context(), w.one).Trouble)
	require.Empty(t, w.asked("SelfNodeRemediation"), "a look changes nothing")
	outcome, err := r.Act(t.Context(), w.one, yes)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	made := w.Get("SelfNodeRemediation", w.one.Node)
	require.Equal(t, map[string]string{nodeKey: w.one.Node, templateKey: "own", attemptKey: "abcdef-0-1"}, made.GetAnnotations())
	require.Equal(t, m{"remediationStrategy": "Automatic"}, made.Object["spec"])
	require.Empty(t, made.GetOwnerReferences())

	metal := w.metal()
	outcome, err = r.Act(t.Context(), metal, yes)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	machine := w.Get("Machine", "machine-1")
	made = w.Get("Metal3Remediation", "machine-1")
	require.Equal(t, metal.Node, made.GetAnnotations()[nodeKey])
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Name: "machine-1", UID: machine.GetUID()}}, made.GetOwnerReferences())
}

// metal is a Node with a provider ID and a Machine, and Metal3's template.
func (w *world) metal() engine.Machine {
	w.template("Metal3RemediationTemplate", m{"template": m{"spec": m{"strategy": m{"type": "Reboot", "retryLimit": 1, "timeout": "300s"}}}})
	metal := w.node(w.Name + "-metal")
	metal.Template, metal.Attempt, metal.ProviderID = w.named("Metal3RemediationTemplate"), "abcdef-0-1", "metal3://"+w.Name
	w.PatchNode(metal.Node, m{"spec": m{"providerID": metal.ProviderID}})
	w.machine("machine-1", metal.Node, metal.ProviderID)

	return metal
}

func (w *world) machine(name, node, providerID string) {
	spec, status := lab.BareMetalMachine(node, providerID, "x")
	w.Create("Machine", name, nil, spec, status)
}

// TestWhatStandsAgainstAnObject is reported by the survey, and refused.
func TestWhatStandsAgainstAnObject(t *testing.T) {
	for name, tc := range map[string]struct {
		metal bool
		set   func(w *world, machine *engine.Machine)
		says  string
	}{
		"excluded": {set: func(w *world, on *engine.Machine) {
			w.PatchNode(on.Node, m{"metadata": m{"labels": m{excludeKey: "true"}}})
		}, says: "has the label " + excludeKey + "=true"},
		"not excluded": {set: func(w *world, on *engine.Machine) {
			w.PatchNode(on.Node, m{"metadata": m{"labels": m{excludeKey: "false"}}})
		}},
		"no agent": {set: func(w *world, on *engine.Machine) {
			w.PatchNode(on.Node, m{"metadata": m{"annotations": m{rebootableKey: nil}}})
		}, says: "the remediator's agent would never reboot the Node"},
		"no template":       {set: func(_ *world, on *engine.Machine) { on.Template.Name = "other" }, says: "/other does not exist; create it, or correct the plan"},
		"nobody's template": {set: func(_ *world, on *engine.Machine) { on.Template = remediations.Template{} }, says: "request the step by a policy whose plan has it"},
		"no such kind":      {set: func(_ *world, on *engine.Machine) { on.Template.APIVersion = "nobody.example/v1" }, says: "does not serve nobody.example/v1"},
		"an empty template": {set: func(w *world, on *engine.Machine) {
			w.template("StrangersRemediationTemplate", m{"template": nil})
			on.Template = w.named("StrangersRemediationTemplate")
		}, says: "has no spec.template.spec"},
		"a stranger's template": {set: func(w *world, on *engine.Machine) {
			w.template("StrangersRemediationTemplate", m{"template": m{"spec": m{"how": m{"it": "likes"}}}})
			on.Template = w.named("StrangersRemediationTemplate")
		}},
		"somebody's": {set: func(w *world, on *engine.Machine) { w.Create("SelfNodeRemediation", on.Node, nil, m{}, nil) }, says: "already exists, and Drydock did not make it"},
		"somebody's by note": {set: func(w *world, on *engine.Machine) {
			w.Create("SelfNodeRemediation", "x-7", m{"annotations": m{nodeKey: on.Node}}, m{}, nil)
		}, says: "x-7 already exists"},
		"an earlier one's": {set: func(w *world, on *engine.Machine) {
			w.Create("SelfNodeRemediation", on.Node, m{"annotations": m{attemptKey: "old-0-1"}}, m{}, nil)
		}, says: `of attempt "old-0-1" still exists`},
		"another Node's": {set: func(w *world, _ *engine.Machine) {
			w.Create("SelfNodeRemediation", "x-7", m{"annotations": m{nodeKey: "x"}}, m{}, nil)
		}},
		"no Machine": {metal: true, set: func(w *world, _ *engine.Machine) {
			w.Patch("Machine", "machine-1", m{"spec": m{"providerID": "metal3://x"}})
			w.Patch("Machine", "machine-1", m{"status": m{"nodeRef": m{"name": "x"}}}, "status")
		}, says: "no Machine in namespace"},
		"two Machines": {metal: true, set: func(w *world, on *engine.Machine) { w.machine("machine-2", on.Node, "metal3://x") }, says: "could both be the Node's; correct status.nodeRef or spec.providerID of one of them"},
		"a Machine's other": {metal: true, set: func(w *world, _ *engine.Machine) {
			w.Patch("Machine", "machine-1", m{"status": m{"nodeRef": m{"name": "x"}}}, "status")
		}, says: "does not match the Node"},
		"a Machine that is updated in place": {metal: true, set: func(w *world, _ *engine.Machine) {
			w.Patch("Machine", "machine-1", m{"metadata": m{"annotations": m{"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}}})
		}, says: "Machine machine-1 is being updated in place"},
		"a Machine": {metal: true, set: func(*world, *engine.Machine) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.one
			if tc.metal {
				on = w.metal()
			}
			tc.set(w, &on)
			r := w.remediator(nil)
			said := r.Survey(t.Context(), on)
			outcome, err := r.Act(t.Context(), on, yes)
			if tc.says == "" {
				require.Empty(t, said.Trouble)
				require.NoError(t, err)
				return
			}
			require.Contains(t, said.Trouble, tc.says)
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, tc.says)
			for _, node := range w.asked("SelfNodeRemediation") {
				require.NotEqual(t, on.Node, node)
			}
		})
	}
}

// TestAnObjectOfAnotherKindOfThePlansStandsAgainstOne: its remediator may be at work on the same
// machine. A kind that is not installed, and an object about another Node, do not hold.
func TestAnObjectOfAnotherKindOfThePlansStandsAgainstOne(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(w *world, on *engine.Machine)
		says string
	}{
		"none": {set: func(*world, *engine.Machine) {}},
		"an earlier attempt's": {set: func(w *world, on *engine.Machine) {
			w.Create("SelfNodeRemediation", on.Node, m{"annotations": m{nodeKey: on.Node, attemptKey: "abcdef-0-1"}}, m{}, nil)
		}, says: `of attempt "abcdef-0-1" still exists`},
		"somebody's": {set: func(w *world, on *engine.Machine) { w.Create("SelfNodeRemediation", on.Node, nil, m{}, nil) }, says: "already exists, and Drydock did not make it"},
		"another Node's": {set: func(w *world, on *engine.Machine) {
			w.Create("SelfNodeRemediation", w.two.Node, m{"annotations": m{nodeKey: w.two.Node, attemptKey: "fedcba-0-1"}}, m{}, nil)
		}},
		"somebody's of Metal3": {set: func(w *world, on *engine.Machine) {
			*on = w.metal()
			w.Create("Metal3Remediation", "machine-1", nil, m{}, nil)
		}, says: "machine-1 already exists"},
		"another Machine's of Metal3": {set: func(w *world, on *engine.Machine) {
			*on = w.metal()
			w.Create("Metal3Remediation", "machine-2", nil, m{}, nil)
		}},
		"Metal3's, and no Machine is the Node's": {set: func(w *world, _ *engine.Machine) { w.Create("Metal3Remediation", "machine-2", nil, m{}, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := w.one
			tc.set(w, &on)
			w.template("FenceAgentsRemediationTemplate", m{"template": m{"spec": m{"agent": "fence_ipmilan"}}})
			on.Template, on.Attempt = w.named("FenceAgentsRemediationTemplate"), "abcdef-1-1"
			absent := on.Template
			absent.APIVersion = "nobody.example/v1"
			r := w.remediator(func(o *Options) {
				o.Templates = []remediations.Template{absent, w.named("SelfNodeRemediationTemplate"), on.Template, w.named("Metal3RemediationTemplate")}
			})
			said := r.Survey(t.Context(), on)
			outcome, err := r.Act(t.Context(), on, yes)
			if tc.says == "" {
				require.Empty(t, said.Trouble)
				require.NoError(t, err)
				require.Equal(t, []string{on.Node}, w.asked("FenceAgentsRemediation"))
				return
			}
			require.Contains(t, said.Trouble, tc.says)
			require.Equal(t, remediations.AskPassing, said.Again)
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, tc.says)
			require.Empty(t, w.asked("FenceAgentsRemediation"))
		})
	}
}

// TestAnObjectThatComesFirst: the API server refuses a second object of that name. The object is
// this attempt's if it has its ID; else it is another client's and left alone.
func TestAnObjectThatComesFirst(t *testing.T) {
	for attempt, want := range map[string]remediations.CallOutcome{
		"abcdef-0-1": remediations.CallAccepted, "abcdef-0-2": remediations.CallRefused, "": remediations.CallRefused,
	} {
		w := newWorld(t)
		outcome, err := w.remediator(nil).Act(t.Context(), w.one, func() error {
			w.Create("SelfNodeRemediation", w.one.Node, m{"annotations": m{attemptKey: attempt}}, m{}, nil)
			return nil
		})
		require.Equal(t, want, outcome, "%v", err)
		require.Equal(t, attempt, w.Get("SelfNodeRemediation", w.one.Node).GetAnnotations()[attemptKey])
	}
}
