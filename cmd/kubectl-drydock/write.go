package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
)

// word is what is to be written on a Node: annotations, nil to take one away.
type word map[string]any

// write puts the annotations on the Node, in one PATCH. doing names it for a refusal.
func (p *plugin) write(ctx context.Context, c client, node, doing string, w word) (*corev1.Node, error) {
	n, err := p.patch(ctx, c, node, annotating(w, ""))
	return n, asking(err, doing, node)
}

// annotating is the patch that writes the annotations; version: only on the Node as it was read.
func annotating(w word, version string) map[string]any {
	meta := map[string]any{"annotations": w}
	if version != "" {
		meta["resourceVersion"] = version
	}
	return map[string]any{"metadata": meta}
}

func (p *plugin) patch(ctx context.Context, c client, node string, change map[string]any) (*corev1.Node, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return c.Nodes().Patch(ctx, node, types.MergePatchType, text, metav1.PatchOptions{FieldManager: fieldManager, DryRun: p.dryRun.option()})
}

// ruling is what a command makes of a Node as it was read: what to write, and which repair that is about.
type ruling struct {
	word word
	// about is what must still be so when it is written: a repair's id. Nodes change all the time, mostly by their
	// kubelets; only another repair makes the word mean something else.
	about string
}

// readAttempts is how often a Node that changes under our hands is read again.
const readAttempts = 5

// writeAsRead reads the Node, lets rule decide, and writes only if the Node is still as it was read. Where it is not, it
// is judged again; the word is given up if it would now be about something else.
func (p *plugin) writeAsRead(ctx context.Context, c client, node, doing string, rule func(*corev1.Node) (ruling, error)) (ruling, error) {
	var first ruling
	for attempt := range readAttempts {
		n, err := c.Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return first, asking(err, doing, node)
		}
		now, err := rule(n)
		switch {
		case err != nil && attempt > 0:
			return first, fmt.Errorf("%s changed while this was being written, and nothing was: %w", node, err)
		case err != nil:
			return first, err
		case attempt > 0 && now.about != first.about:
			return first, fmt.Errorf("%s changed while this was being written, and nothing was: its repair is now %s and no longer %s; look at `kubectl drydock status` and decide again", node, now.about, first.about)
		}
		first = now
		_, err = p.patch(ctx, c, node, annotating(now.word, n.ResourceVersion))
		if !apierrors.IsConflict(err) {
			return first, asking(err, doing, node)
		}
	}
	return first, fmt.Errorf("%s changed each of the %d times that this was tried, and nothing was written; try again", node, readAttempts)
}

// underWay is the node's repair, or why there is none that a word could be about.
func underWay(n *corev1.Node) (*remediations.Record, error) {
	j := remediations.ReadJournal(n)
	switch {
	case j.Malformed != nil:
		return nil, fmt.Errorf("what is recorded on %s cannot be read (%w); `kubectl drydock reset %s` drops it", n.Name, j.Malformed, n.Name)
	case j.Record == nil:
		return nil, fmt.Errorf("there is no repair on %s", n.Name)
	}
	return j.Record, nil
}

// named is the node's repair, if it is the one that id names; empty: whichever there is.
func named(n *corev1.Node, id string) (*remediations.Record, error) {
	r, err := underWay(n)
	if err == nil && id != "" && r.ID != id {
		return nil, fmt.Errorf("there is no repair %s on %s; the one there is %s by policy %s, %s", id, n.Name, r.ID, r.Policy, r.Phase)
	}
	return r, err
}
