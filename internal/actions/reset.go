package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
)

// Reset is the action that deletes exhausted repairs, once a person has fixed the node.
func Reset() *Action {
	return &Action{
		Name: "reset", Verb: admission.VerbFor(remediations.ResetKey), Keys: []string{remediations.ResetKey}, Parameters: []Parameter{id},
		Will: "Drydock deletes the exhausted repair, or the record that cannot be read, with its counts. If the policy was stopped, it starts again.",
		refuses: func(n *corev1.Node) error {
			_, err := resettable(n, "")
			return err
		},
		prepare: func(given Params, _ time.Time) (apply, error) {
			return func(ctx context.Context, w *Writer, node string) (string, error) {
				return reset(ctx, w, node, given["id"], "")
			}, nil
		},
	}
}

var resets = annotations{remediations.ResetKey: "true"}

// reset needs an exhausted repair or an unreadable record. If id is not empty, one of the exhausted
// repairs must have this ID. If of is not empty, the reset must start the policy of this name
// again.
func reset(ctx context.Context, w *Writer, node, id, of string) (string, error) {
	var spent []inspect.Repair
	err := w.writeAsRead(ctx, node, "resetting "+node, func(n *corev1.Node) (ruling, error) {
		var err error
		if spent, err = resettable(n, of); err != nil {
			return ruling{}, err
		}
		about := []string{}
		for _, r := range spent {
			about = append(about, r.Record.ID)
		}
		if id != "" && !slices.Contains(about, id) {
			return ruling{}, fmt.Errorf("there is no exhausted repair %s on %s; a reset would delete %s", id, n.Name, cmp.Or(strings.Join(about, ", "), "a record that cannot be read"))
		}
		if len(about) == 0 {
			about = []string{"unreadable"}
		}
		return ruling{annotations: resets, about: strings.Join(about, ", ")}, nil
	})
	switch {
	case err != nil:
		return "", err
	case len(spent) == 0:
		return fmt.Sprintf("Reset requested: Drydock deletes the unreadable record of %s and may repair the node again. An Event and `kubectl drydock history %s` keep its text.", node, node), nil
	}
	return forgets(spent), nil
}

func forgets(spent []inspect.Repair) string {
	var what, policies []string
	for _, r := range spent {
		if own(r) {
			what = append(what, r.Record.ID+" on "+r.Node)
		} else {
			what = append(what, r.Record.ID+" of "+r.Name())
		}
		if occupies(r) && !slices.Contains(policies, r.Record.Policy) {
			policies = append(policies, r.Record.Policy)
		}
	}
	repairs := "repair"
	if len(spent) > 1 {
		repairs = "repairs"
	}
	said := fmt.Sprintf("Reset requested: Drydock deletes the exhausted %s %s", repairs, strings.Join(what, ", "))
	if own(spent[0]) {
		said += " with its counts, and the cordon if Drydock set it"
	}
	switch len(policies) {
	case 0:
		said += ". A stopped policy that repairs the node starts again"
	case 1:
		said += fmt.Sprintf(". Policy %s starts again if it was stopped", policies[0])
	default:
		said += fmt.Sprintf(". Policies %s start again if they were stopped", strings.Join(policies, ", "))
	}
	return said + ". `kubectl drydock status` shows when this is done."
}

// resettable returns the exhausted repairs that a reset deletes. If a record is unreadable and of
// is "", it returns none and no error. It returns an error if a reset would delete nothing, or not
// start the policy named in of again.
func resettable(n *corev1.Node, of string) ([]inspect.Repair, error) {
	if remediations.ReadJournal(n).Malformed != nil && of == "" {
		return nil, nil
	}
	all, err := repairsOn(n)
	if err != nil {
		return nil, err
	}
	spent := kept(all, func(r inspect.Repair) bool { return r.Record.Phase == remediations.PhaseExhausted })
	switch {
	case len(all) == 0:
		return nil, nothingToReset{fmt.Errorf("there is nothing to reset on %s: it has no exhausted repair and no unreadable record%s", n.Name, resetBefore(n))}
	case len(spent) == 0:
		return nil, nothingToReset{fmt.Errorf("repair %s of %s is %s and not exhausted; to end it: `kubectl drydock cancel %s`", all[0].Record.ID, all[0].Name(), all[0].Record.Phase, n.Name)}
	case own(all[0]) && all[0].Record.Phase.InFlight():
		return nil, fmt.Errorf("repair %s of %s is %s; the exhausted repair %s of %s can be reset only when the first one has ended; to end it: `kubectl drydock cancel %s`",
			all[0].Record.ID, n.Name, all[0].Record.Phase, spent[0].Record.ID, spent[0].Name(), n.Name)
	}
	if of != "" && !slices.ContainsFunc(spent, func(r inspect.Repair) bool { return occupies(r) && r.Record.Policy == of }) {
		return nil, fmt.Errorf("the exhausted repair %s of %s is by policy %s; its reset does not start policy %s again", spent[0].Record.ID, spent[0].Name(), spent[0].Record.Policy, of)
	}
	return spent, nil
}

// resetBefore returns the exhausted repair that was reset last, or "". A person who repeats a reset
// then sees that it was already done.
func resetBefore(n *corev1.Node) string {
	for _, e := range remediations.ReadJournal(n).History {
		if e.Reset && e.Outcome == remediations.OutcomeExhausted {
			return fmt.Sprintf("; repair %s was already reset", e.ID)
		}
	}
	return ""
}

// nothingToReset is for a Node with neither an exhausted repair nor an unreadable record. A reset
// may still change the ledger.
type nothingToReset struct{ error }

// ResetNode resets the node. If the Node has nothing to reset, a reset may still change the ledger.
// For example, the ledger may expect more GPUs than the machine has now.
func ResetNode(ctx context.Context, r *inspect.Reader, w *Writer, node string, given Params) (said string, err error) {
	prepared, err := Reset().Prepare(given, r.Now())
	if err != nil {
		return "", err
	}
	said, err = prepared.Apply(ctx, w, node)
	if refused := (nothingToReset{}); !errors.As(err, &refused) || given["id"] != "" {
		return said, err
	}
	seen, failed := r.Observe(ctx, node, inspect.Sources{})
	switch {
	case failed != nil:
		return "", fmt.Errorf("%w; it is unknown whether the ledger has something to reset, because it could not be read: %w", err, failed)
	case seen.Ledger.Whole == nil:
		return "", fmt.Errorf("%w; it is unknown whether the ledger has something to reset, because it could not be read: %s", err, seen.Ledger.Problem)
	case seen.State == nil:
		return "", fmt.Errorf("%w; it is unknown whether the ledger has something to reset, because Drydock's configuration could not be read", err)
	}
	var forgotten string
	failed = w.writeAsRead(ctx, node, "resetting "+node, func(n *corev1.Node) (ruling, error) {
		d := ifReset(seen, n)
		if !d.Forgets() {
			return ruling{}, err
		}
		forgotten = d.Message
		return ruling{annotations: resets, about: forgotten}, nil
	})
	if failed != nil {
		return "", failed
	}
	return w.saying(fmt.Sprintf("Reset requested on %s: %s. `kubectl drydock status` shows when this is done.", node, forgotten)), nil
}

// ResetPolicy starts a stopped policy again. It resets the first node, by name, with an exhausted
// repair of the policy, or else the first whose reset starts the policy again.
func ResetPolicy(ctx context.Context, r *inspect.Reader, w *Writer, policy string) (said string, err error) {
	var nodes []*corev1.Node
	if err := r.EachNode(ctx, metav1.ListOptions{}, func(n *corev1.Node) error { nodes = append(nodes, n); return nil }); err != nil {
		return "", err
	}
	for _, n := range nodes {
		if _, err := resettable(n, policy); err == nil {
			said, err := reset(ctx, w, n.Name, "", policy)
			return w.saying(said), err
		}
	}
	l, err := r.ReadLedger(ctx)
	switch {
	case err != nil:
		return "", err
	case l.Whole == nil:
		return "", fmt.Errorf("no node has an exhausted repair by policy %s, and it is unknown whether the policy is stopped: %s", policy, l.Problem)
	case !l.Whole.Failing(policy) && l.Status.Stopped[policy] == "":
		return "", fmt.Errorf("no node has an exhausted repair by policy %s, and the policy is not stopped; `kubectl drydock status` shows which policies are stopped", policy)
	}
	why := "the cluster has no node"
	if len(nodes) > 0 {
		seen, err := r.Observe(ctx, nodes[0].Name, inspect.Sources{})
		if err != nil {
			return "", err
		}
		if n := taker(seen, nodes, policy); n != nil {
			return release(ctx, w, seen, n.Name, policy)
		}
		why = "there is no node whose reset starts it again now"
		if seen.State == nil {
			why = "it is unknown which nodes it repairs, because Drydock's configuration could not be read"
		}
	}
	return "", fmt.Errorf("policy %s is stopped, no node has an exhausted repair by it, and %s; choose a node that the policy repairs and that is not under repair, and run: kubectl annotate node NODE %s=true", policy, why, remediations.ResetKey)
}

// taker prefers a node whose reset starts no other policy. It returns nil if no node fits.
func taker(seen *inspect.Observation, nodes []*corev1.Node, policy string) (n *corev1.Node) {
	for _, candidate := range nodes {
		switch on := released(seen, candidate); {
		case !slices.Contains(on, policy):
		case len(on) == 1:
			return candidate
		case n == nil:
			n = candidate
		}
	}
	return n
}

// released returns the stopped policies that a reset of the Node starts again. It returns none if
// the Node has an exhausted repair: the reset would delete it, and the person did not name it.
func released(seen *inspect.Observation, n *corev1.Node) []string {
	if seen.State == nil {
		return nil
	}
	j := seen.Config.Core.Registry.ReadJournal(n)
	for _, r := range []*remediations.Record{j.Record, j.Location()} {
		if r != nil && r.Phase == remediations.PhaseExhausted {
			return nil
		}
	}
	return ifReset(seen, n).Allow
}

// ifReset returns the engine's decision as if the Node already had the reset annotation.
func ifReset(seen *inspect.Observation, n *corev1.Node) lifecycle.Decision {
	n = n.DeepCopy()
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, remediations.ResetKey, "true")
	state := *seen.State
	state.Node, state.Journal = n, seen.Config.Core.Registry.ReadJournal(n)
	return node.Decide(&state, seen.Now)
}

// release resets a node to start the policy again. The reset deletes no repair.
func release(ctx context.Context, w *Writer, seen *inspect.Observation, name, policy string) (string, error) {
	var on []string
	err := w.writeAsRead(ctx, name, "resetting "+name, func(n *corev1.Node) (ruling, error) {
		if on = released(seen, n); !slices.Contains(on, policy) {
			return ruling{}, fmt.Errorf("a reset of %s no longer starts policy %s again; try again", name, policy)
		}
		return ruling{annotations: resets, about: policy}, nil
	})
	if err != nil {
		return "", err
	}
	goes := "policy " + policy + " starts again"
	if len(on) > 1 {
		goes = "policies " + strings.Join(on, ", ") + " start again"
	}
	return w.saying(fmt.Sprintf("Reset requested on %s, which deletes no repair there: %s. `kubectl drydock status` shows when this is done.", name, goes)), nil
}
