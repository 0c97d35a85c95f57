package backtest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// Nodes implements engine.Fleet.
func (w *world) Nodes(context.Context) ([]*corev1.Node, error) { return w.nodes, nil }

// Changed implements engine.Changing.
func (w *world) Changed(context.Context) (nodes []*corev1.Node, gone []string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(w.touched)) { // sorted, because the engine samples nodes in their order of arrival
		if n := w.node[name]; n != nil {
			nodes = append(nodes, n.now)
		} else {
			gone = append(gone, name)
		}
	}
	clear(w.touched)
	return nodes, gone, true
}

// Node implements engine.Fleet.
func (w *world) Node(_ context.Context, name string) (*corev1.Node, error) {
	n := w.node[name]
	if n == nil {
		return nil, engine.ErrNotFound
	}
	return n.now, nil
}

// Lease implements engine.Fleet.
func (w *world) Lease(_ context.Context, name string) (time.Time, time.Duration, error) {
	n := w.node[name]
	if n == nil {
		return time.Time{}, 0, engine.ErrNotFound
	}
	return w.renewed(n.now), leaseFor, nil
}

// Leases implements engine.Fleet.
func (w *world) Leases(_ context.Context, names []string) (map[string]signs.Lease, error) {
	if w.asked != nil {
		w.asked(names)
	}
	out := make(map[string]signs.Lease, len(names))
	for _, name := range names {
		if n := w.node[name]; n != nil {
			out[name] = w.lease(n.now)
		}
	}
	return out, nil
}

// Heartbeats implements engine.Fleet.
func (w *world) Heartbeats(context.Context) (map[string]signs.Lease, error) {
	out := make(map[string]signs.Lease, len(w.nodes))
	for _, n := range w.nodes {
		out[n.Name] = w.lease(n)
	}
	return out, nil
}

func (w *world) lease(n *corev1.Node) signs.Lease {
	return signs.Lease{ReadAt: w.now, RenewedAt: w.renewed(n), Duration: leaseFor}
}

// Write implements engine.NodeWriter.
func (w *world) Write(_ context.Context, was *corev1.Node, c engine.NodeChange) (*corev1.Node, error) {
	n := w.node[was.Name]
	switch {
	case n == nil:
		return nil, engine.ErrNotFound
	case n.now.ResourceVersion != was.ResourceVersion:
		return nil, engine.ErrConflict
	}
	before := n.now
	change(n.annotations, c.Annotations)
	change(n.labels, c.Labels)
	if c.Unschedulable != nil {
		n.cordoned = *c.Unschedulable
	}
	if c.OutOfService != nil {
		n.tainted = &metav1.Time{Time: *c.OutOfService}
	}
	if c.InService != nil {
		n.tainted = nil
	}
	w.compose(n)
	w.story.wrote(w.now, before, n.now)
	if w.wrote != nil {
		w.wrote(before, n.now)
	}
	return n.now, nil
}

func (w *world) patch(_ context.Context, was *corev1.Node, annotations map[string]*string) error {
	n := w.node[was.Name]
	if n == nil {
		return engine.ErrNotFound
	}
	before := n.now
	change(n.annotations, annotations)
	if w.compose(n); w.wrote != nil {
		w.wrote(before, n.now)
	}
	return nil
}

func change(all map[string]string, changes map[string]*string) {
	for k, v := range changes {
		if delete(all, k); v != nil {
			all[k] = *v
		}
	}
}

// OwnsCordon implements engine.NodeWriter.
func (w *world) OwnsCordon(_ context.Context, name string) (bool, error) {
	n := w.node[name]
	return n != nil && n.cordoned && !n.past.Spec.Unschedulable, nil
}

// OwnsAnnotations implements engine.NodeWriter.
func (w *world) OwnsAnnotations(_ context.Context, name string, keys []string) (owned []string, err error) {
	for _, k := range keys {
		if n := w.node[name]; n != nil {
			if _, ok := n.annotations[k]; ok {
				owned = append(owned, k)
			}
		}
	}
	return owned, nil
}

// SetBy implements engine.NodeWriter.
func (w *world) SetBy(context.Context, string, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}

// Load implements engine.LedgerStore.
func (w *world) Load(context.Context) (map[string]string, string, error) {
	if w.ledger == nil {
		return nil, "", engine.ErrNotFound
	}
	return maps.Clone(w.ledger), strconv.Itoa(w.ledgerAt), nil
}

// Save implements engine.LedgerStore.
func (w *world) Save(_ context.Context, data map[string]string, version string) (string, error) {
	if w.ledger != nil && version != strconv.Itoa(w.ledgerAt) {
		return "", engine.ErrConflict
	}
	w.ledgerAt++
	w.ledger = maps.Clone(data)
	w.story.saved(w.now, data)
	return strconv.Itoa(w.ledgerAt), nil
}

// Event implements engine.Recorder.
func (w *world) Event(_ string, e engine.Event) { w.story.noteEvent(w.now, e) }
