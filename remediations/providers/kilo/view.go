package kilo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// member also has what must be known before the node becomes a leader.
type member struct {
	election.Node
	declared string
	uid      types.UID
	version  string
	// key is the value of the leader annotation, or nil without the annotation.
	key    *string
	repair string
	// moved names the nodes that this repair has made leaders so far, and those that led before.
	moved    []string
	unfit    string
	notReady string
}

// view was read at one time, and is sorted by name.
type view []member

// enter waits until no other Look, Move or PutBack runs. The caller must call leave.
func (m *Mesh) enter(ctx context.Context) (leave func(), err error) {
	select {
	case m.one <- struct{}{}:
		return func() { <-m.one }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *Mesh) read(ctx context.Context) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var v view
	// A list without a resourceVersion returns the newest state, and not that of the API server's
	// cache.
	o := metav1.ListOptions{Limit: m.page}
	for {
		page, err := m.options.API.List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("listing the Nodes: %w", err)
		}
		for i := range page.Items {
			v = append(v, m.member(&page.Items[i]))
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	slices.SortFunc(v, func(a, b member) int { return strings.Compare(a.Name, b.Name) })
	for i := range v {
		for _, name := range v[i].moved {
			if k := find(v, name); k != nil && k.repair == "" {
				k.repair = "the repair on " + v[i].Name + " made it the leader"
			}
		}
	}
	return v, nil
}

func (m *Mesh) reread(ctx context.Context, name string) (member, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	n, err := m.options.API.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return member{}, fmt.Errorf("reading Node %s again: %w", name, err)
	}
	return m.member(n), nil
}

func (m *Mesh) member(n *corev1.Node) member {
	k := member{Node: election.Read(n, m.options.TopologyLabel), declared: election.Declared(n, m.options.TopologyLabel), uid: n.UID, version: n.ResourceVersion}
	k.repair, k.moved = repairOn(n)
	k.notReady, k.unfit = k.NotReady(m.options.Now()), m.unfit(n, k.repair)
	if v, ok := n.Annotations[election.LeaderKey]; ok {
		k.key = &v
	}
	return k
}

// moved has the names of the old and new leaders in the moves of that repair. what is "" if there
// is no repair.
func repairOn(n *corev1.Node) (what string, moved []string) {
	for _, key := range []string{remediations.LocationKey, remediations.NodeRepairKey} {
		if _, ok := n.Annotations[key]; ok {
			what = "it has a repair record of its own (" + key + ")"
		}
	}
	if phase := n.Labels[remediations.PhaseLabel]; phase != "" {
		what = "it is under repair itself, in phase " + clip(phase)
	}
	if r, err := remediations.DecodeRecord(n.Annotations[remediations.LocationKey]); err == nil {
		for _, move := range r.Moves {
			moved = append(moved, move.From, move.To)
		}
	}
	return what, moved
}

func (m *Mesh) unfit(n *corev1.Node, repair string) string {
	if why := m.options.HoldWhen.Leaving(n, m.options.Registry.ReadJournal(n), m.options.Now()); why != "" {
		return why
	}
	switch c := remediations.ReadyCondition(n); {
	case c == nil || c.Status != corev1.ConditionTrue:
		return "it is not Ready"
	case n.Spec.Unschedulable:
		return "it is cordoned"
	case remediations.ControlPlane(n) && !m.options.AllowControlPlane:
		return "it is a control-plane node (providers.kilo.allowControlPlane)"
	case remediations.Excluded(n):
		return "it has the label " + remediations.ExcludeLabel
	case lifecycle.BreakGlassSet(n):
		return "it has the annotation " + remediations.BreakGlassKey
	case repair != "":
		return repair
	}
	if v, ok := n.Annotations[remediations.PauseKey]; ok {
		// An invalid pause counts, too, because a person wanted to hold the node.
		if p, err := remediations.ParsePause(v); err != nil || p.Until.IsZero() || m.options.Now().Before(p.Until) {
			return "it has the annotation " + remediations.PauseKey
		}
	}
	for _, a := range remediations.AlertsOn(n.Annotations) {
		for _, value := range a.Labels {
			if a.Status == remediations.StatusFiring && value == n.Name {
				return "the alert " + clip(a.Name) + " is firing about it"
			}
		}
	}
	return ""
}

// others belong to the location but are not part of Kilo's mesh now.
func (v view) of(location string) (members, others []member) {
	for _, k := range v {
		switch {
		case k.Location == location && k.notReady == "":
			members = append(members, k)
		case k.Location == location || k.declared == location:
			others = append(others, k)
		}
	}
	return members, others
}

func nodes(members []member) []election.Node {
	out := make([]election.Node, len(members))
	for i, k := range members {
		out[i] = k.Node
	}
	return out
}

func find(members []member, name string) *member {
	for i := range members {
		if members[i].Name == name {
			return &members[i]
		}
	}
	return nil
}
