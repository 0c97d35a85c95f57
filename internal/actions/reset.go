package actions

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// Reset forgets a repair that ran out of steps.
func Reset() *Action {
	return &Action{
		Name: "reset", Verb: admission.VerbFor(remediations.ResetKey), Keys: []string{remediations.ResetKey},
		Will: "The repair that ran out of steps, or a record that cannot be read, is forgotten with its counts, and its policy goes on if it was stopped.",
		refuses: func(n *corev1.Node) error {
			_, err := resettable(n, "")
			return err
		},
		prepare: func(Params, time.Time) (apply, error) {
			return func(ctx context.Context, w *Writer, node string) (string, error) { return reset(ctx, w, node, "") }, nil
		},
	}
}

// reset writes the reset, where there is something to forget. of names the policy that it must be of; empty: any.
func reset(ctx context.Context, w *Writer, node, of string) (string, error) {
	var what, policy string
	err := w.writeAsRead(ctx, node, "resetting "+node, func(n *corev1.Node) (ruling, error) {
		about, err := resettable(n, of)
		if err != nil {
			return ruling{}, err
		}
		if about == nil {
			what, policy = "What nobody can read", ""
			return ruling{annotations: annotations{remediations.ResetKey: "true"}, about: "unreadable"}, nil
		}
		what, policy = "The exhausted repair "+about.ID, about.Policy
		return ruling{annotations: annotations{remediations.ResetKey: "true"}, about: about.ID}, nil
	})
	if err != nil {
		return "", err
	}
	if policy != "" {
		return fmt.Sprintf("%s on %s is about to be forgotten, with its counts and the cordon if Drydock set it, and policy %s goes on if it was stopped; `kubectl drydock status` shows when it is gone.", what, node, policy), nil
	}
	return fmt.Sprintf("%s on %s is about to be dropped, and Drydock goes on with the node; an Event and `kubectl drydock history %s` keep what it said.", what, node, node), nil
}

// resettable is the exhausted repair, or nil where the record cannot be read; an error where there is neither.
func resettable(n *corev1.Node, of string) (*remediations.Record, error) {
	j := remediations.ReadJournal(n)
	switch r := j.Record; {
	case j.Malformed != nil && of == "":
		return nil, nil
	case r == nil:
		return nil, fmt.Errorf("there is no exhausted repair on %s, and none that cannot be read: nothing is there to reset", n.Name)
	case r.Phase != remediations.PhaseExhausted:
		return nil, fmt.Errorf("repair %s of %s is %s and not exhausted; to end it, `kubectl drydock cancel %s`", r.ID, n.Name, r.Phase, n.Name)
	case of != "" && r.Policy != of:
		return nil, fmt.Errorf("the exhausted repair %s of %s is by policy %s, not by %s", r.ID, n.Name, r.Policy, of)
	default:
		return r, nil
	}
}

// ResetPolicy resets one exhausted node of the policy: the first by name.
func ResetPolicy(ctx context.Context, w *Writer, policy string) (said string, err error) {
	nodes, err := w.Client.Nodes().List(ctx, metav1.ListOptions{LabelSelector: remediations.PhaseLabel + "=" + string(remediations.PhaseExhausted)})
	if err != nil {
		return "", inspect.Asking(err, "listing the exhausted nodes", "")
	}
	for i := range nodes.Items {
		if _, err := resettable(&nodes.Items[i], policy); err == nil {
			return reset(ctx, w, nodes.Items[i].Name, policy)
		}
	}
	return "", fmt.Errorf("no node has an exhausted repair by policy %s; `kubectl drydock status` shows which policies are stopped", policy)
}
