// Package actions is what a person may request of Drydock for a node, as annotations on the Node.
// The plugin's commands and its page share this code: it checks the input, checks the Node as read,
// and sends one PATCH.
package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

// FieldManager is the field manager of people's writes, so that managedFields show them apart from
// Drydock's.
const FieldManager = "kubectl-drydock"

// Writer writes on Nodes with the rights of its client.
type Writer struct {
	Client corev1client.NodesGetter
	// DryRun: the API server checks rights and admission, and writes nothing.
	DryRun bool
	// Tried is the subject of the action's earlier dry run; the action is written for no other.
	// Nil: there was no dry run.
	Tried *Subject
	// Within bounds one request; zero: AnswerWithin.
	Within time.Duration

	of Subject
	// lost: the API server's answer was lost, and the Node has what was to be written.
	lost bool
}

// Subject is what an action concerns.
type Subject struct {
	// UID is the Node's UID: another machine may have the Node's name later.
	UID types.UID
	// About is the repair's ID, or what else the action would end. Empty: the action concerns the
	// Node.
	About string
}

// Of returns the subject of the last action.
func (w *Writer) Of() Subject { return w.of }

// annotations are to be written on a Node; a nil value removes the key.
type annotations map[string]any

// write sets the annotations on the Node in one PATCH. doing describes the action in error
// messages.
func (w *Writer) write(ctx context.Context, node, doing string, a annotations) (*corev1.Node, error) {
	meta := map[string]any{"annotations": a}
	if w.Tried != nil && w.Tried.UID != "" {
		meta["uid"] = w.Tried.UID
	}
	n, err := w.Patch(ctx, node, map[string]any{"metadata": meta})
	switch {
	case err == nil:
		w.of = Subject{UID: n.UID}
		return n, nil
	case meta["uid"] != nil && anotherUID(err):
		return nil, registeredAgain(node)
	}
	return w.settle(ctx, node, doing, a, err)
}

// anotherUID reports whether the API server refused the patch because the Node has another UID.
func anotherUID(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsConflict(err)) && strings.Contains(strings.ToLower(err.Error()), "uid")
}

func registeredAgain(node string) error {
	return fmt.Errorf("nothing was written, because node %s was deleted and registered again; check `kubectl drydock status` and try again", node)
}

// Patch sends one merge patch.
func (w *Writer) Patch(ctx context.Context, node string, change map[string]any) (*corev1.Node, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	o := metav1.PatchOptions{FieldManager: FieldManager}
	if w.DryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(w.Within, AnswerWithin))
	defer cancel()
	return w.Client.Nodes().Patch(ctx, node, types.MergePatchType, text, o) //nolint:wrapcheck // callers say what it was for
}

// ruling is an action's decision about a Node as read: what to write, and which repair that
// concerns.
type ruling struct {
	annotations annotations
	// about must still be the same at the write: a repair's id, or what the action ends. Nodes
	// change all the time, mostly by their kubelets; only another repair changes the meaning of the
	// action.
	about string
}

// Attempts is how often a Node that changes meanwhile is read again.
const Attempts = 5

// writeAsRead reads the Node, calls rule, and writes only if the Node is unchanged since. If the
// Node changed, writeAsRead calls rule again. It gives up if the action would then concern
// something else.
func (w *Writer) writeAsRead(ctx context.Context, node, doing string, rule func(*corev1.Node) (ruling, error)) error {
	var first ruling
	for attempt := range Attempts {
		n, err := w.Client.Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return inspect.Asking(err, doing, node)
		}
		now, err := rule(n)
		switch {
		case err != nil && attempt > 0:
			return fmt.Errorf("nothing was written, because %s has changed: %w", node, err)
		case err != nil:
			return err
		case attempt == 0 && w.Tried != nil:
			first.about = w.Tried.About
		case attempt == 0:
			first = now
		}
		switch {
		case w.Tried != nil && w.Tried.UID != n.UID:
			return registeredAgain(node)
		case now.about != first.about:
			return fmt.Errorf("nothing was written, because %s has changed: it now has %s instead of %s; check `kubectl drydock status` and try again", node, cmp.Or(now.about, "nothing"), cmp.Or(first.about, "nothing"))
		}
		w.of = Subject{n.UID, now.about}
		if len(now.annotations) == 0 {
			return nil
		}
		_, err = w.Patch(ctx, node, map[string]any{"metadata": map[string]any{"annotations": now.annotations, "resourceVersion": n.ResourceVersion}})
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err):
			_, err = w.settle(ctx, node, doing, now.annotations, err)
			return err
		}
	}
	return fmt.Errorf("nothing was written, because %s changed during each of %d attempts; try again", node, Attempts)
}

// repairsOn returns the repairs on the Node, as status names them: the node's own first, then the
// mesh leader's, then those of sidecars.
func repairsOn(n *corev1.Node) ([]inspect.Repair, error) {
	if j := remediations.ReadJournal(n); j.Malformed != nil {
		return nil, fmt.Errorf("what is recorded on %s cannot be read (%w); `kubectl drydock reset %s` drops it", n.Name, j.Malformed, n.Name)
	}
	all := slices.DeleteFunc(inspect.RepairsOn(n), func(r inspect.Repair) bool { return r.Record == nil })
	rank := func(r inspect.Repair) int {
		switch {
		case own(r):
			return 0
		case occupies(r):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b inspect.Repair) int { return rank(a) - rank(b) })
	return all, nil
}

// own reports whether the repair is of the node itself.
func own(r inspect.Repair) bool {
	return remediations.RepairPrefix+r.Target == remediations.NodeRepairKey
}

// occupies reports whether admission keeps people off the Node while the repair is in flight.
func occupies(r inspect.Repair) bool {
	return remediations.OccupyingKey(remediations.RepairPrefix + r.Target)
}

// open returns the repairs on the Node that an action may concern. An error says why there are
// none.
func open(n *corev1.Node, may func(inspect.Repair) error) ([]inspect.Repair, error) {
	all, err := repairsOn(n)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, fmt.Errorf("there is no repair on %s", n.Name)
	}
	if out := kept(all, func(r inspect.Repair) bool { return may(r) == nil }); len(out) > 0 {
		return out, nil
	}
	return nil, may(all[0])
}

// meant returns the repair that the action concerns: the one with the id. Without an id it is the
// repair that keeps people off the node, because an admission denial names the command without an
// id. Otherwise it is the repair that waits for approval.
func meant(n *corev1.Node, action, id string, may func(inspect.Repair) error) (inspect.Repair, error) {
	if id != "" {
		return byID(n, id, may)
	}
	out, err := open(n, may)
	if err != nil {
		return inspect.Repair{}, err
	}
	for _, first := range []func(inspect.Repair) bool{
		occupies,
		func(r inspect.Repair) bool { return r.Record.Phase.InFlight() },
		func(r inspect.Repair) bool {
			return r.Record.Hold != nil && r.Record.Hold.Reason == remediations.ReasonAwaitingApproval
		},
	} {
		if some := kept(out, first); len(some) > 0 {
			out = some
		}
	}
	if len(out) > 1 {
		return inspect.Repair{}, fmt.Errorf("there are several repairs on %s: %s; say which: kubectl drydock %s %s ID", n.Name, listed(out), action, n.Name)
	}
	return out[0], nil
}

func byID(n *corev1.Node, id string, may func(inspect.Repair) error) (inspect.Repair, error) {
	all, err := repairsOn(n)
	i := slices.IndexFunc(all, func(r inspect.Repair) bool { return r.Record.ID == id })
	switch {
	case err != nil:
		return inspect.Repair{}, err
	case len(all) == 0:
		return inspect.Repair{}, fmt.Errorf("there is no repair on %s", n.Name)
	case i < 0 && len(all) == 1:
		return inspect.Repair{}, fmt.Errorf("there is no repair %s on %s; the current one is %s", id, n.Name, listed(all))
	case i < 0:
		return inspect.Repair{}, fmt.Errorf("there is no repair %s on %s; there are %s", id, n.Name, listed(all))
	}
	return all[i], may(all[i])
}

func kept(all []inspect.Repair, by func(inspect.Repair) bool) []inspect.Repair {
	return slices.DeleteFunc(slices.Clone(all), func(r inspect.Repair) bool { return !by(r) })
}

// listed lists the repairs in a sentence.
func listed(all []inspect.Repair) string {
	var out []string
	for _, r := range all {
		of := ""
		if !own(r) {
			of = " of " + r.Name()
		}
		out = append(out, fmt.Sprintf("%s%s by policy %s, %s", r.Record.ID, of, r.Record.Policy, r.Record.Phase))
	}
	return strings.Join(out, "; ")
}
