package actions

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

var id = Parameter{Name: "id", Ask: "Which repair? Empty: the one on the node", Example: "n7q4k2", Argument: true}

// Approve lets a repair begin that waits for a person.
func Approve() *Action {
	return &Action{
		Name: "approve", Verb: admission.VerbFor(remediations.ApproveKey), Keys: []string{remediations.ApproveKey}, Parameters: []Parameter{id},
		Will:    "The repair that waits for approval begins as soon as no other guard holds it.",
		refuses: about(approvable),
		prepare: names(remediations.ApproveKey, "approving", approvable, func(r *remediations.Record, node string) string {
			held := ""
			if r.Hold != nil && r.Hold.Reason != remediations.ReasonAwaitingApproval {
				held = fmt.Sprintf(" (now it is held by %s)", r.Hold.Reason)
			}
			return fmt.Sprintf("Repair %s of %s is approved: it begins with %s as soon as no other guard holds it%s, as `kubectl drydock status -w` shows.", r.ID, node, r.Step, held)
		}),
	}
}

func approvable(r *remediations.Record, node string) error {
	if r.Phase == remediations.PhasePending && r.Intent == nil {
		return nil
	}
	return fmt.Errorf("repair %s of %s waits for no approval: it is %s and has begun already", r.ID, node, r.Phase)
}

// Cancel ends a repair.
func Cancel() *Action {
	return &Action{
		Name: "cancel", Verb: admission.VerbFor(remediations.CancelKey), Keys: []string{remediations.CancelKey}, Parameters: []Parameter{id},
		Will:    "The repair ends: nothing more is issued, and what Drydock did to the Node, for example a cordon, is taken back.",
		refuses: about(cancellable),
		prepare: names(remediations.CancelKey, "cancelling", cancellable, func(r *remediations.Record, node string) string {
			when := "at once"
			if r.Phase == remediations.PhaseActing {
				when = "when the call that is under way is over"
			}
			return fmt.Sprintf("Repair %s of %s ends %s: nothing more is issued, and what it did to the Node is taken back; `kubectl drydock history %s` then shows it.", r.ID, node, when, node)
		}),
	}
}

func cancellable(r *remediations.Record, node string) error {
	if r.Phase == remediations.PhaseExhausted {
		return fmt.Errorf("repair %s of %s has run out of steps already; `kubectl drydock reset %s` when the node is fixed", r.ID, node, node)
	}
	return nil
}

// about is the refusal of an action that is about the node's repair.
func about(may func(*remediations.Record, string) error) func(*corev1.Node) error {
	return func(n *corev1.Node) error {
		r, err := underWay(n)
		if err != nil {
			return err
		}
		return may(r, n.Name)
	}
}

// names writes a repair's id under the key, where the repair is there and may be told so.
func names(key, doing string, may func(*remediations.Record, string) error, said func(*remediations.Record, string) string) func(Params, time.Time) (apply, error) {
	return func(given Params, _ time.Time) (apply, error) {
		return func(ctx context.Context, w *Writer, node string) (string, error) {
			var about *remediations.Record
			err := w.writeAsRead(ctx, node, doing+" the repair of "+node, func(n *corev1.Node) (ruling, error) {
				r, err := named(n, given["id"])
				if err != nil {
					return ruling{}, err
				}
				about = r
				return ruling{annotations: annotations{key: r.ID}, about: r.ID}, may(r, node)
			})
			if err != nil {
				return "", err
			}
			return said(about, node), nil
		}, nil
	}
}
