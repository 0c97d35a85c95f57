package engine

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
)

// servant is one of several providers of machines. It notes which nodes it was asked about.
type servant struct {
	replacer
	name string
}

func (s servant) note(node string) {
	s.w.do(func() {
		if s.w.served == nil {
			s.w.served = map[string]map[string]bool{}
		}
		if s.w.served[s.name] == nil {
			s.w.served[s.name] = map[string]bool{}
		}
		s.w.served[s.name][node] = true
	})
}

func (s servant) Survey(ctx context.Context, m Machine) remediations.Survey {
	s.note(m.Node)
	return s.replacer.Survey(ctx, m)
}

func (s servant) Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	s.note(m.Node)
	return s.replacer.Act(ctx, m, mayStill)
}

func (s servant) Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error) {
	s.note("replaced " + beforeOf(b).Instance)
	return s.replacer.Replaced(ctx, b)
}

func (w *world) servedBy(name string) []string {
	return at(w, func() []string { return slices.Sorted(maps.Keys(w.served[name])) })
}

// ofTwo is a configuration whose steps two providers carry out.
func ofTwo(steps ...string) *remediations.Config {
	c := planned(steps...)
	c.Providers = []remediations.Provider{{Name: "civo", Scheme: "civo://", Steps: steps}, {Name: "bmc", Scheme: "bmc://", Steps: steps}}
	return c
}

// machineAt sets the provider ID of a node's machine.
func (w *world) machineAt(node, providerID string) {
	w.machines[node].providerID = providerID
	w.edit(node, func(n *corev1.Node) { n.Spec.ProviderID = providerID })
}

// TestEachNodeIsItsOwnProviders: of two unhealthy nodes, each goes to the provider of its machine,
// one after the other because the limits count both. A third node without a provider is held, and
// no provider is asked about it.
func TestEachNodeIsItsOwnProviders(t *testing.T) {
	c := ofTwo("reboot")
	c.Limits.Concurrent.Value = 1
	inWorld(t, c, 12, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.machineAt("n1", "bmc://rack-1"); w.machineAt("n2", "aws:///eu/i-2") })
		w.pass(16 * time.Second)
		w.do(func() {
			for _, n := range []string{"n0", "n1", "n2"} {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		require.True(t, w.until(15*time.Minute, func() bool { return len(w.ended) == 2 }))
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, []string{"n0"}, w.servedBy("civo"))
		require.Equal(t, []string{"n1"}, w.servedBy("bmc"))
		h := w.recordOf("n2").Hold
		require.Equal(t, remediations.ReasonProviderAbsent, h.Reason)
		require.Equal(t, `no provider serves Node n2 for the step reboot: its spec.providerID is "aws:///eu/i-2", and civo serves Nodes whose spec.providerID begins with civo://, bmc serves Nodes whose spec.providerID begins with bmc://`, h.Message)
		require.Equal(t, 2, w.callCount())
		w.do(func() { w.machineAt("n2", "bmc://rack-2") }) // the control
		w.pass(5 * time.Minute)
		require.Len(t, w.outcomes(), 3)
		require.Equal(t, []string{"n1", "n2"}, w.servedBy("bmc"))
	})
}

// TestNoCallIsMadeForANodeThatChangedItsProviderOrMachine: one provider was asked, and the intent
// was written. Before the call, the Node moves to another provider or another machine. The call is
// not made and costs no attempt, and the new provider repairs the node.
func TestNoCallIsMadeForANodeThatChangedItsProviderOrMachine(t *testing.T) {
	const superseded = "superseded"
	for name, to := range map[string]struct {
		change func(w *world)
		says   string
		by     []string
	}{
		"to another provider by a label": {func(w *world) { w.edit("n0", func(n *corev1.Node) { n.Labels["rack"] = "1" }) }, "bmc now serves Node n0; the call was meant for civo", []string{"n0"}},
		"to another machine":             {func(w *world) { w.machineAt("n0", "civo://other") }, superseded, nil},
		"to nobody":                      {func(w *world) { w.machineAt("n0", "aws:///eu/i-0") }, superseded, nil},
		"control: to itself":             {func(w *world) { w.edit("n0", func(n *corev1.Node) { n.Labels["other"] = "1" }) }, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := ofTwo("reboot")
			c.Providers[1].NodeSelector = labels.SelectorFromSet(labels.Set{"rack": "1"})
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.mood.before = 3 * time.Second
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				require.True(t, w.until(time.Minute, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseActing }))
				require.Equal(t, "civo", w.recordOf("n0").Intent.Provider)
				w.do(func() { to.change(w) })
				if to.says == "" {
					require.True(t, w.until(10*time.Minute, func() bool { return len(w.ended) == 1 }))
					require.Empty(t, w.servedBy("bmc"))
					return
				}
				if to.says == superseded { // the record belongs to another machine
					require.True(t, w.until(20*time.Second, func() bool { return w.record("n0") == nil || w.record("n0").Intent == nil }))
				} else {
					require.True(t, w.until(20*time.Second, func() bool { return w.record("n0").Phase == remediations.PhasePending }))
					require.Equal(t, remediations.ReasonProviderAbsent, w.recordOf("n0").Hold.Reason)
					require.Contains(t, w.recordOf("n0").Hold.Message, to.says)
				}
				require.Zero(t, w.callCount())
				w.pass(10 * time.Minute)
				require.Equal(t, to.by, w.servedBy("bmc"))
				require.Equal(t, name != "to nobody", w.callCount() == 1)
			})
		})
	}
}

// TestAReplacementIsProvenByTheProviderThatWasCalled: this also holds for a process that did not
// make the call, after the Node is gone.
func TestAReplacementIsProvenByTheProviderThatWasCalled(t *testing.T) {
	c := ofTwo("replace")
	c.Provided["drain"] = true
	c.Providers[1].NodeSelector = labels.SelectorFromSet(labels.Set{"rack": "1"})
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.do(func() {
			w.recycling.nodeGoes, w.recycling.joins = 20*time.Second, time.Minute
			w.edit("n0", func(n *corev1.Node) { n.Labels["rack"] = "1" })
		})
		w.start()
		w.pass(16 * time.Second)
		id := w.nodeOf("n0").Spec.ProviderID
		w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }))
		w.restart(c)
		require.True(t, w.until(10*time.Minute, func() bool { return len(w.ended) == 1 }))
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, []string{"n0", "replaced " + id}, w.servedBy("bmc"))
		require.Empty(t, w.servedBy("civo"), "its scheme is Civo's, and the selector goes before it")
	})
}

// TestNodesWithoutAProviderAreInTheLedger: they are also in the metric, without an alert, until a
// provider serves them.
func TestNodesWithoutAProviderAreInTheLedger(t *testing.T) {
	inWorld(t, ofTwo("reboot"), 6, func(t *testing.T, w *world) {
		w.do(func() { w.machineAt("n1", "aws:///eu/i-1"); w.machineAt("n4", "aws:///eu/i-4") })
		w.start()
		w.pass(16 * time.Second)
		lacks := at(w, w.book).Status.Uncovered
		require.Len(t, lacks, 1)
		require.Equal(t, 2, lacks["reboot"].Nodes)
		require.Contains(t, lacks["reboot"].First, "no provider serves Node n1 for the step reboot")
		require.Equal(t, map[string]float64{"reboot": 2}, w.last().series(t, "drydock_nodes_uncovered"))

		w.do(func() { w.machineAt("n1", "bmc://rack-1") })
		w.pass(coverageEvery + time.Minute)
		require.Equal(t, 1, at(w, w.book).Status.Uncovered["reboot"].Nodes)
		w.do(func() { w.machineAt("n4", "civo://4") })
		w.pass(coverageEvery + time.Minute)
		require.Empty(t, at(w, w.book).Status.Uncovered)
		require.Equal(t, map[string]float64{"reboot": 0}, w.last().series(t, "drydock_nodes_uncovered"))
		old := w.last()
		w.do(old.cancel)
		w.pass(6 * time.Second)
		require.Empty(t, old.series(t, "drydock_nodes_uncovered"), "a replica that no longer leads says nothing")
		require.Zero(t, w.callCount())
	})
}

// TestOtherRepairersAreInTheLedger: they are listed even without an alert or a hold. A repairer is
// found by labels of a Node or by its object in the cluster, and is listed while it repairs a Node
// that a policy also repairs.
func TestOtherRepairersAreInTheLedger(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		of := "n2"
		w.repairers = func() []coverage.Repairer {
			return []coverage.Repairer{{Object: "NodeHealthCheck workers", Repairs: func(n *corev1.Node) bool { return n.Name == of }}}
		}
		w.do(func() { w.edit("n4", func(n *corev1.Node) { n.Labels["kubernetes.azure.com/cluster"] = "prod" }) })
		w.start()
		w.pass(16 * time.Second)
		says := at(w, w.book).Status.Contested
		require.Len(t, says, 2)
		require.Contains(t, says[0], "two systems may repair the same node: NodeHealthCheck workers repairs 1 Node that Drydock's policies also repair: n2;")
		require.Contains(t, says[1], "AKS node auto-repair (label kubernetes.azure.com/cluster) repairs 1 Node that Drydock's policies also repair: n4;")

		w.do(func() {
			of = ""
			w.ail("n2", 1)
			w.post("n2", remediations.StatusFiring)
		})
		w.pass(coverageEvery + time.Minute)
		require.Len(t, at(w, w.book).Status.Contested, 1)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes(), "none of it holds a repair")
	})
}

// TestALabelThatComesLaterShowsAnotherRepairer: the Nodes are read again only after one of them
// changed.
func TestALabelThatComesLaterShowsAnotherRepairer(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			w.ail("n2", 1)
			w.post("n2", remediations.StatusFiring)
		})
		w.pass(coverageEvery + time.Minute)
		require.Empty(t, at(w, w.book).Status.Contested)
		w.do(func() {
			w.edit("n4", func(n *corev1.Node) { n.Labels["kubernetes.azure.com/cluster"] = "prod" })
			w.ail("n3", 1)
			w.post("n3", remediations.StatusFiring)
		})
		w.pass(coverageEvery + time.Minute)
		require.Len(t, at(w, w.book).Status.Contested, 1)
	})
}
