package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
)

// shows also makes Drydock report in the Nodes' conditions what it does.
func shows(c *remediations.Config) { c.Conditions = true }

// Show is the port that writes on nodes/status.
func (i *instance) Show(ctx context.Context, n *corev1.Node) (*corev1.Node, error) {
	set, remove := i.config.Registry.ReadJournal(n).ConditionsDue(n)
	if len(set)+len(remove) == 0 {
		return n, nil
	}
	fatal := i.enter("show "+n.Name, true)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	fault, cur := i.fault("show"), i.w.nodes[n.Name]
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case fault == "lost":
		return nil, errLost
	case cur == nil:
		return nil, ErrNotFound
	case fault == "conflict" || cur.UID != n.UID || cur.ResourceVersion != n.ResourceVersion:
		return nil, ErrConflict
	}
	i.w.checkConditions(i, cur, set, remove)
	i.w.edit(n.Name, func(n *corev1.Node) {
		n.Status.Conditions = slices.DeleteFunc(slices.Clone(n.Status.Conditions), func(c corev1.NodeCondition) bool { return slices.Contains(remove, c.Type) })
		n.Status.Conditions = append(n.Status.Conditions, set...)
	})
	i.leave(fatal)
	return i.w.nodes[n.Name].DeepCopy(), nil
}

// keepShowing repeats, beside the loop as the leader does, what Show could not write.
func (i *instance) keepShowing(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(5 * time.Second)
		i.w.mu.Lock()
		var nodes []*corev1.Node
		for _, name := range slices.Sorted(maps.Keys(i.w.nodes)) {
			nodes = append(nodes, i.w.nodes[name].DeepCopy())
		}
		i.w.mu.Unlock()
		for _, n := range nodes {
			_, _ = i.Show(ctx, n)
		}
	}
}

// checkConditions checks invariants 1 and 8 of the conditions. Drydock sets a condition only if
// there is none, and only for a repair that acts. It removes only its own.
func (w *world) checkConditions(i *instance, cur *corev1.Node, set []corev1.NodeCondition, remove []corev1.NodeConditionType) {
	r := remediations.ReadJournal(cur).Record
	for _, c := range set {
		switch {
		case conditionOf(cur, c.Type) != nil:
			w.fail("8: set the condition %s on %s, where it was", c.Type, cur.Name)
		case r == nil || r.Intent == nil:
			w.fail("8: set the condition %s on %s, which has no intent", c.Type, cur.Name)
		case c.Type == corev1.NodeDrainInProgress && (r.Step.Name != "drain" || r.Phase != remediations.PhaseActing):
			w.fail("8: said that %s is being drained, and its record is %s of %s", cur.Name, r.Phase, r.Step)
		}
	}
	for _, removed := range remove {
		if c := conditionOf(cur, removed); c == nil || c.Reason != announce.Reason {
			w.fail("8: removed the condition %s from %s, which is somebody else's", removed, cur.Name)
		}
	}
}

func conditionOf(n *corev1.Node, of corev1.NodeConditionType) *corev1.NodeCondition {
	if i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == of }); i >= 0 {
		return &n.Status.Conditions[i]
	}
	return nil
}

// others is a condition that another system sets.
func others(of corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: of, Status: status, Reason: "AdminRequested"}
}

func isOthers(c corev1.NodeCondition) bool { return c.Reason == "AdminRequested" }

// condition sets the condition on the node.
func (w *world) condition(node string, c corev1.NodeCondition) {
	w.edit(node, func(n *corev1.Node) {
		n.Status.Conditions = append(slices.DeleteFunc(slices.Clone(n.Status.Conditions), func(was corev1.NodeCondition) bool { return was.Type == c.Type }), c)
	})
}
