package actions

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

var id = Parameter{Name: "id", Ask: "Which repair? Empty: the one on the node", Example: "n7q4k2", Argument: true}

// Approve lets a repair start that waits for approval.
func Approve() *Action {
	return &Action{
		Name: "approve", Verb: admission.VerbFor(remediations.ApproveKey), Keys: []string{remediations.ApproveKey}, Parameters: []Parameter{id},
		Will:    "The repair that waits for approval begins as soon as no other guard holds it.",
		refuses: about(approvable),
		prepare: names(remediations.ApproveKey, "approve", "approving", approvable, func(of inspect.Repair) string {
			r, held := of.Record, ""
			if r.Hold != nil && r.Hold.Reason != remediations.ReasonAwaitingApproval {
				held = fmt.Sprintf(" (now it is held by %s)", r.Hold.Reason)
			}
			return fmt.Sprintf("Repair %s of %s is approved: it begins with %s as soon as no other guard holds it%s, as `kubectl drydock status -w` shows.", r.ID, of.Name(), r.Step, held)
		}),
	}
}

func approvable(of inspect.Repair) error {
	switch r := of.Record; {
	case r.Phase == remediations.PhasePending && r.Intent == nil && r.Shares():
		return fmt.Errorf("repair %s of %s waits for no approval: its policy only observes", r.ID, of.Name()) // a sidecar's repair is on record before it starts only if its policy observes
	case r.Phase == remediations.PhasePending && r.Intent == nil:
		return nil
	default:
		return fmt.Errorf("repair %s of %s waits for no approval: it is %s and has begun already", r.ID, of.Name(), r.Phase)
	}
}

// Cancel ends a repair.
func Cancel() *Action {
	return &Action{
		Name: "cancel", Verb: admission.VerbFor(remediations.CancelKey), Keys: []string{remediations.CancelKey}, Parameters: []Parameter{id},
		Will:    "The repair ends: Drydock issues no more calls, and undoes what it did to the Node, for example a cordon. A mesh leadership that was moved stays moved.",
		refuses: about(cancellable),
		prepare: names(remediations.CancelKey, "cancel", "cancelling", cancellable, func(of inspect.Repair) string {
			r, when, then := of.Record, "at once", of.Record.LeftAs()
			if r.Phase == remediations.PhaseActing && r.Back == nil {
				when = "when the call that is under way has ended"
			}
			if own(of) {
				then = ", and Drydock undoes what it did to the Node"
			}
			return fmt.Sprintf("Repair %s of %s ends %s: nothing more is issued%s; `kubectl drydock history %s` then shows it.", r.ID, of.Name(), when, then, of.Node)
		}),
	}
}

func cancellable(of inspect.Repair) error {
	if of.Record.Phase == remediations.PhaseExhausted {
		return fmt.Errorf("repair %s of %s has run out of steps already; `kubectl drydock reset %s` when the node is fixed", of.Record.ID, of.Name(), of.Node)
	}
	return nil
}

// about returns a refusal for actions that concern a repair on the node.
func about(may func(inspect.Repair) error) func(*corev1.Node) error {
	return func(n *corev1.Node) error {
		_, err := open(n, may)
		return err
	}
}

// names writes a repair's id under the key, if the repair exists and may permits it.
func names(key, action, doing string, may func(inspect.Repair) error, said func(inspect.Repair) string) func(Params, time.Time) (apply, error) {
	return func(given Params, _ time.Time) (apply, error) {
		return func(ctx context.Context, w *Writer, node string) (string, error) {
			var about inspect.Repair
			err := w.writeAsRead(ctx, node, doing+" the repair of "+node, func(n *corev1.Node) (ruling, error) {
				r, err := meant(n, action, given["id"], may)
				if err != nil {
					return ruling{}, err
				}
				about = r
				return ruling{annotations: annotations{key: r.Record.ID}, about: r.Record.ID}, nil
			})
			if err != nil {
				return "", err
			}
			return said(about), nil
		}, nil
	}
}
