// Package actions has the actions that a person may request of Drydock for a node, for example a
// pause. A request is an annotation on the Node. The plugin's commands and its page share this
// code. It checks the input, reads and checks the Node, and sends one PATCH.
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

// FieldManager shows people's writes in managedFields, where it differs from Drydock's own.
const FieldManager = "kubectl-drydock"

// Writer writes on Nodes with the rights of its client.
type Writer struct {
	Client corev1client.NodesGetter
	// DryRun makes the API server check rights and admission, and write nothing.
	DryRun bool
	// Tried identifies the Node and the repair of an earlier dry run, or is nil. The action is refused
	// if it is now about another Node or repair.
	Tried *Subject
	// Within bounds one request. Zero means AnswerWithin.
	Within time.Duration

	of Subject
	// lost reports that the API server's answer was lost, but the Node shows the write.
	lost bool
}

// Subject identifies what an action concerns: a Node, and usually a repair on it.
type Subject struct {
	// UID is the Node's UID, because another machine may get the Node's name later.
	UID types.UID
	// About is the repair's ID, or the name of something else that the action ends, for example
	// "the pause". It is empty if the action concerns only the Node.
	About string
}

// Of returns the subject of the last action that the Writer carried out.
func (w *Writer) Of() Subject { return w.of }

// annotations are to be written on a Node. A nil value removes the key.
type annotations map[string]any

// write sends one PATCH. doing names the action in errors, for example "pausing n1".
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

func anotherUID(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsConflict(err)) && strings.Contains(strings.ToLower(err.Error()), "uid")
}

func registeredAgain(node string) error {
	return fmt.Errorf("nothing was written, because node %s was deleted and registered again; check `kubectl drydock status` and try again", node)
}

// Patch sends change as one merge patch of the Node.
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
	return w.Client.Nodes().Patch(ctx, node, types.MergePatchType, text, o) //nolint:wrapcheck // callers add what the patch was for
}

type ruling struct {
	annotations annotations
	// about is the repair's ID, or the name of something else that the action ends. If the Node has
	// changed, the write is repeated only if about is still the same. The Node changes often, mostly
	// by its kubelet.
	about string
}

// Attempts is how often a write is tried if the Node changes between the read and the write.
const Attempts = 5

// writeAsRead writes what rule returns for the Node. If the Node has changed in the meantime, it
// reads again and repeats this. It returns an error if ruling.about has changed.
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
			return fmt.Errorf("nothing was written, because %s has changed: the command would now concern %s instead of %s; check `kubectl drydock status` and try again", node, cmp.Or(now.about, "nothing"), cmp.Or(first.about, "nothing"))
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

// repairsOn returns first the repair of the node itself, then that of the mesh leader, then those
// of sidecars.
func repairsOn(n *corev1.Node) ([]inspect.Repair, error) {
	if j := remediations.ReadJournal(n); j.Malformed != nil {
		return nil, fmt.Errorf("a record on %s cannot be read (%w); to delete it: `kubectl drydock reset %s`", n.Name, j.Malformed, n.Name)
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

func own(r inspect.Repair) bool {
	return remediations.RepairPrefix+r.Target == remediations.NodeRepairKey
}

// occupies reports whether the admission webhook denies people's changes of the Node while this
// repair is in flight.
func occupies(r inspect.Repair) bool {
	return remediations.OccupyingKey(remediations.RepairPrefix + r.Target)
}

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

// meant returns the repair that the action is about. Without an id, it prefers the repair that
// makes the admission webhook deny changes of the Node. Then it prefers one in flight, then one
// that waits for approval. If several are left, it returns an error.
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
		return inspect.Repair{}, fmt.Errorf("there are several repairs on %s: %s; give the ID of one: kubectl drydock %s %s ID", n.Name, listed(out), action, n.Name)
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
		return inspect.Repair{}, fmt.Errorf("there is no repair %s on %s; its repair is %s", id, n.Name, listed(all))
	case i < 0:
		return inspect.Repair{}, fmt.Errorf("there is no repair %s on %s; its repairs are %s", id, n.Name, listed(all))
	}
	return all[i], may(all[i])
}

func kept(all []inspect.Repair, by func(inspect.Repair) bool) []inspect.Repair {
	return slices.DeleteFunc(slices.Clone(all), func(r inspect.Repair) bool { return !by(r) })
}

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
