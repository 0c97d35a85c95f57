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

// Approve is the action that starts a repair that waits for approval.
func Approve() *Action {
	return &Action{
		Name: "approve", Verb: admission.VerbFor(remediations.ApproveKey), Keys: []string{remediations.ApproveKey}, Parameters: []Parameter{id},
		Will:    "The repair that waits for approval begins as soon as no other guard holds it.",
		refuses: about(approvable),
		prepare: names(remediations.ApproveKey, "approve", "approving", approvable, func(of inspect.Repair) string {
			r, held := of.Record, ""
			if r.Hold != nil && r.Hold.Reason != remediations.ReasonAwaitingApproval {
				held = fmt.Sprintf(" (now %s holds it)", r.Hold.Reason)
			}
			return fmt.Sprintf("Repair %s of %s is approved: it begins with %s as soon as no other guard holds it%s. To follow it: `kubectl drydock status -w`.", r.ID, of.Name(), r.Step, held)
		}),
	}
}

func approvable(of inspect.Repair) error {
	switch r := of.Record; {
	case r.Phase == remediations.PhasePending && r.Intent == nil && r.Shares():
		return fmt.Errorf("repair %s of %s does not wait for approval: its policy only observes", r.ID, of.Name()) // a sidecar's pending repair is on record only if its policy observes
	case r.Phase == remediations.PhasePending && r.Intent == nil:
		return nil
	default:
		return fmt.Errorf("repair %s of %s does not wait for approval: it has begun and is %s", r.ID, of.Name(), r.Phase)
	}
}

// Cancel is the action that ends a repair.
func Cancel() *Action {
	return &Action{
		Name: "cancel", Verb: admission.VerbFor(remediations.CancelKey), Keys: []string{remediations.CancelKey}, Parameters: []Parameter{id},
		Will:    "The repair ends: Drydock issues no more calls, and undoes what it did to the Node, for example a cordon. A mesh leadership that was moved stays moved.",
		refuses: about(cancellable),
		prepare: names(remediations.CancelKey, "cancel", "cancelling", cancellable, func(of inspect.Repair) string {
			r, when, then := of.Record, "at once", of.Record.LeftAs()
			if r.Phase == remediations.PhaseActing && r.Back == nil {
				when = "when its running call has ended"
			}
			if own(of) {
				then = ", and undoes what it did to the Node"
			}
			return fmt.Sprintf("Repair %s of %s ends %s: Drydock issues nothing more%s. `kubectl drydock history %s` then shows the repair.", r.ID, of.Name(), when, then, of.Node)
		}),
	}
}

func cancellable(of inspect.Repair) error {
	if of.Record.Phase == remediations.PhaseExhausted {
		return fmt.Errorf("repair %s of %s is exhausted, so there is nothing to cancel; once the node is fixed, run `kubectl drydock reset %s`", of.Record.ID, of.Name(), of.Node)
	}
	return nil
}

// about returns a function for Action.refuses. It refuses a Node unless may returns nil for at
// least one of its repairs.
func about(may func(inspect.Repair) error) func(*corev1.Node) error {
	return func(n *corev1.Node) error {
		_, err := open(n, may)
		return err
	}
}

// names returns a function for Action.prepare, which writes a repair's ID into the annotation key.
// may returns an error for a repair that the action must not change. said returns the sentence that
// the person reads after the write.
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
