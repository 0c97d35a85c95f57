package requests

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// The keys of Drydock and of people, and keys that only look like them.
var keys = []string{
	remediations.NodeRepairKey, remediations.RepairPrefix + "leader", remediations.RepairPrefix + "sidecar-3f",
	remediations.AlertPrefix + "9f2c0e5b6d1a4c33", remediations.HistoryKey,
	remediations.PauseKey, remediations.RequestKey, remediations.ApproveKey, remediations.CancelKey, remediations.ResetKey,
	remediations.BreakGlassKey, remediations.ExcludeLabel, admission.MeshLeaderKey,
	"drydock.dev/unknown", "other.drydock.dev/x", "notdrydock.dev/history", "drydock.dev.example.com/x", "example.com/rack",
}

var users = []User{Drydock, Person, Kubelet, NodeUser, Manager, Cloud, NodeCtl, Cilium, GPU, Kilo, Karpenter, Machines, Driver, Autoscale}

// Generate returns a random request.
func Generate(t *rapid.T) Case {
	c := Case{
		Name: "generated", By: rapid.SampledFrom(users).Draw(t, "user"), Status: rapid.Bool().Draw(t, "status"),
		Create: rapid.IntRange(0, 9).Draw(t, "create") == 0, Unentitled: rapid.IntRange(0, 2).Draw(t, "unentitled") == 0,
	}
	if !c.Create {
		c.Before = anyState(t)
	}
	if c.Create || rapid.IntRange(0, 6).Draw(t, "delete") > 0 {
		c.Change = anyChange(t)
	} else {
		c.Status = false
	}
	c.Status = c.Status && !c.Create
	return c
}

func anyState(t *rapid.T) func(*corev1.Node) {
	states := []func(*corev1.Node){
		nothing, inFlight, acting, pending, exhausted, observing, leaderInFlight, sidecarInFlight, labelOnly, malformed,
		recordOnly, requested, tainted, replacing(remediations.PhaseActing, "replace", UID), replacing(remediations.PhaseVerifying, "replace", UID),
		replacing(remediations.PhaseVerifying, "reboot", UID), looksLikeReplacing,
		replacing(remediations.PhaseVerifying, "external-replace", UID), replacementCutOff, replacementOfALaterVersion,
	}
	state := rapid.SampledFrom(states).Draw(t, "state")
	broken, cordoned := rapid.IntRange(0, 3).Draw(t, "break-glass") == 0, rapid.Bool().Draw(t, "cordoned")
	more := rapid.SliceOfN(rapid.SampledFrom(keys[5:]), 0, 2).Draw(t, "keys before")
	return func(n *corev1.Node) {
		state(n)
		n.Spec.Unschedulable = cordoned
		for _, k := range more {
			if k != remediations.BreakGlassKey {
				n.Annotations[k] = "before"
			}
		}
		if broken {
			n.Annotations[remediations.BreakGlassKey] = "why"
		}
	}
}

func anyChange(t *rapid.T) func(*corev1.Node) {
	var all []func(*corev1.Node)
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		key, value := rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom([]string{"before", "after", "true", "reboot", ID, ""}).Draw(t, "value")
		t := rapid.SampledFrom([]func(*corev1.Node){
			annotate(key, value), remove(key), label(key, labelValue(value)), annotate(key, value), remove(key),
			label(remediations.PhaseLabel, "Pending"), remove(remediations.PhaseLabel), cordon, uncordon,
			taint("x", corev1.TaintEffectNoExecute), untaint("drydock.example/draining"), owned,
		}).Draw(t, "change")
		all = append(all, t)
	}
	return func(n *corev1.Node) {
		for _, f := range all {
			f(n)
		}
	}
}

func labelValue(v string) string { return strings.ReplaceAll(v, " ", "-") }

func (c *Case) works(n *corev1.Node) bool {
	var r struct {
		V             int
		Phase, Policy string
		Step          struct{ Name string }
		Intent        struct{ UID string }
	}
	err := json.Unmarshal([]byte(n.Annotations["repair.drydock.dev/node"]), &r)
	by := map[string]string{"replace": Karpenter.Name, "external-replace": Machines.Name}[r.Step.Name]
	return c.By.Name == by && err == nil && r.V == 1 && r.Policy != "" && r.Phase != "Pending" && r.Phase != "Exhausted" && r.Intent.UID == string(n.UID)
}

// HardCore reports whether the hard core of admission denies the request, from the keys' names and
// the phase label. As an oracle for tests, it calls neither the core nor the policy.
func (c *Case) HardCore() bool {
	before, after := c.Nodes()
	if c.By.Name == Drydock.Name {
		return false
	}
	node := strings.HasPrefix(c.By.Name, "system:node:") || slices.Contains(c.By.Groups, "system:nodes")
	exempt := strings.HasPrefix(c.By.Name, "system:serviceaccount:kube-system:") ||
		slices.Contains([]string{Manager.Name, Cloud.Name, GPU.Name, Autoscale.Name}, c.By.Name)
	if before == nil {
		before = &corev1.Node{}
	}
	phase := before.Labels["drydock.dev/phase"]
	_, broken := before.Annotations["drydock.dev/break-glass"]
	busy := (phase == "Acting" || phase == "Verifying") && !broken
	works := c.works(before)
	if after == nil {
		return busy && !exempt && !node && !works
	}
	if c.deniedForKeys(before, after, node, busy) {
		return true
	}
	if busy && !exempt && !works && len(after.OwnerReferences) > 0 {
		return true // in no case does the Node have an owner before
	}
	flips := !c.Status && before.Spec.Unschedulable != after.Spec.Unschedulable
	may := exempt || node || works && after.Spec.Unschedulable || c.By.Name == Driver.Name && phase == "Verifying"
	return busy && flips && !may
}

func (c *Case) deniedForKeys(before, after *corev1.Node, node, busy bool) bool {
	words := []string{"drydock.dev/request", "drydock.dev/approve", "drydock.dev/reset", "drydock.dev/cancel", "drydock.dev/break-glass"}
	for i, m := range [][2]map[string]string{{before.Annotations, after.Annotations}, {before.Labels, after.Labels}} {
		for _, k := range slices.Concat(slices.Collect(maps.Keys(m[0])), slices.Collect(maps.Keys(m[1]))) {
			old, was := m[0][k]
			now, is := m[1][k]
			if was == is && old == now {
				continue
			}
			own := strings.HasPrefix(k, "alert.drydock.dev/") || strings.HasPrefix(k, "repair.drydock.dev/") ||
				k == "drydock.dev/history" || k == "drydock.dev/phase"
			word := i == 0 && is && slices.Contains(words, k)
			switch {
			case node && (own || strings.HasPrefix(k, "drydock.dev/")),
				own && is, own && busy,
				c.Unentitled && !node && (own || word):
				return true
			}
		}
	}
	return false
}
