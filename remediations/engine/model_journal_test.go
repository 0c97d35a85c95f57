package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
)

func (i *instance) Write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error) {
	fatal := i.enter("write "+describe(n, c), true)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.checkName(n.Name)
	fault := i.fault("write")
	cur := i.w.nodes[n.Name]
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case fault == "lost" || n.Name == i.w.unwritable:
		return nil, errLost
	case n.Name == i.w.refuses:
		return nil, ErrUnwritten
	case cur == nil:
		return nil, ErrNotFound
	case fault == "conflict" || cur.UID != n.UID || (cur.ResourceVersion != n.ResourceVersion && !i.w.lies.ignoreNodeVersion):
		return nil, ErrConflict
	}
	if phase := c.Labels[remediations.PhaseLabel]; i.w.lies.forgetIntents && phase != nil && *phase == string(remediations.PhaseActing) {
		return n.DeepCopy(), nil
	}
	if d := describe(n, c); i.w.lies.forgetIntents && (d == n.Name+" sidecar Acting" || d == n.Name+" leader Acting") {
		return n.DeepCopy(), nil
	}
	i.w.checkWrite(i, cur, c)
	i.w.edit(n.Name, func(n *corev1.Node) {
		apply(n.Annotations, c.Annotations)
		if !i.w.lies.dropLabels {
			apply(n.Labels, c.Labels)
		}
		if c.Unschedulable != nil {
			n.Spec.Unschedulable = *c.Unschedulable
			i.w.machines[n.Name].cordonedBy = map[bool]string{true: "drydock"}[*c.Unschedulable]
		}
		if c.OutOfService != nil {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: remediations.OutOfServiceTaint, TimeAdded: &metav1.Time{Time: *c.OutOfService}})
		}
		if c.InService != nil {
			n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == remediations.OutOfServiceTaint })
		}
	})
	i.w.checkState()
	i.w.checkSidecarState(i)
	i.leave(fatal)
	if fault == "written" {
		return nil, errLost
	}
	return i.w.nodes[n.Name].DeepCopy(), nil
}

// adopt takes an alert that only the poll found, as the receiver beside the engine does. It writes
// the alert at once or not at all.
func (i *instance) adopt(ctx context.Context, n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result) {
	i.w.mu.Lock()
	i.w.checkName(n.Name)
	live := i.w.nodes[n.Name]
	i.w.mu.Unlock()
	if live == nil || live.UID != n.UID {
		return a, intake.UnknownNode
	}
	if old, err := remediations.DecodeAlert(a.Key(), n.Annotations[a.Key()]); err == nil {
		a = a.SeenSince(old)
	}
	drop, ok := i.w.admit(live.Annotations, a)
	if !ok {
		return a, intake.NodeFull
	}
	value := a.Encode()
	change := NodeChange{Annotations: map[string]*string{a.Key(): &value}}
	for _, k := range drop {
		change.Annotations[k] = nil
	}
	if _, err := i.Write(ctx, live, change); err != nil {
		return a, ""
	}
	return a, intake.Accepted
}

func apply(to map[string]string, change map[string]*string) {
	for k, v := range change {
		if v == nil {
			delete(to, k)
		} else {
			to[k] = *v
		}
	}
}

// describe names a write in the list of port calls.
func describe(n *corev1.Node, c NodeChange) string {
	phase := "other"
	for k, v := range c.Annotations {
		if !strings.HasPrefix(k, remediations.RepairPrefix+"sidecar-") {
			continue
		}
		phase = "sidecar end"
		if v != nil {
			r, _ := modelRegistry.DecodeRecord(*v)
			phase = "sidecar " + string(r.Phase)
		}
	}
	if v, ok := c.Annotations[remediations.LocationKey]; ok {
		if v == nil {
			return n.Name + " leader end"
		}
		r, _ := modelRegistry.DecodeRecord(*v)
		if r.Back != nil {
			return n.Name + " leader back " + string(r.Phase)
		}
		return n.Name + " leader " + string(r.Phase)
	}
	if v, ok := c.Labels[remediations.PhaseLabel]; ok {
		phase = "end"
		if v != nil {
			phase = *v
		}
	}
	return n.Name + " " + phase
}

func (i *instance) OwnsCordon(_ context.Context, node string) (bool, error) {
	i.enter("ownsCordon", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	m := i.w.machines[node]
	if m == nil {
		return false, ErrNotFound
	}
	return m.cordonedBy == "drydock" || i.w.lies.ownsEveryCordon, nil
}

// SetBy: in this world people use kubectl, and the clock of the API server is correct.
func (i *instance) SetBy(_ context.Context, node, annotation string) (string, time.Time, error) {
	i.enter("setBy", false)
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	n := i.w.nodes[node]
	if n == nil {
		return "", time.Time{}, ErrNotFound
	}
	if _, ok := n.Annotations[annotation]; !ok {
		return "", time.Time{}, nil
	}
	return "kubectl-annotate", i.w.breakGlassSince[node], nil
}
