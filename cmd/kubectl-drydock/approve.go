package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

func (p *plugin) newApproveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approve NODE [ID]",
		Short: "Let a repair begin that waits for a person's approval",
		Long:  "Approve lets the repair of that id begin, or the one that waits on the node. The other guards are still asked.",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.tell(cmd.Context(), args, remediations.ApproveKey, "approving the repair of "+args[0], approvable, func(r *remediations.Record) string {
				held := ""
				if r.Hold != nil && r.Hold.Reason != remediations.AwaitingApproval {
					held = fmt.Sprintf(" (now it is held by %s)", r.Hold.Reason)
				}
				return fmt.Sprintf("Repair %s of %s is approved: it begins with %s as soon as no other guard holds it%s, as `kubectl drydock status -w` shows.", r.ID, args[0], r.Step, held)
			})
		},
	}
}

func approvable(r *remediations.Record, node string) error {
	if r.Phase == remediations.Pending && r.Intent == nil {
		return nil
	}
	return fmt.Errorf("repair %s of %s waits for no approval: it is %s and has begun already", r.ID, node, r.Phase)
}

func (p *plugin) newCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel NODE [ID]",
		Short: "End a repair, and take back what it did to the node",
		Long: "Cancel ends the repair of that id, or the one on the node. A call to the provider that is under way is not torn; what\n" +
			"Drydock did to the Node, such as a cordon, is taken back.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.tell(cmd.Context(), args, remediations.CancelKey, "cancelling the repair of "+args[0], cancellable, func(r *remediations.Record) string {
				when := "at once"
				if r.Phase == remediations.Acting {
					when = "when the call that is under way is over"
				}
				return fmt.Sprintf("Repair %s of %s ends %s: nothing more is issued, and what it did to the Node is taken back; `kubectl drydock history %s` then shows it.", r.ID, args[0], when, args[0])
			})
		},
	}
}

func cancellable(r *remediations.Record, node string) error {
	if r.Phase == remediations.Exhausted {
		return fmt.Errorf("repair %s of %s has run out of steps already; `kubectl drydock reset %s` when the node is mended", r.ID, node, node)
	}
	return nil
}

// tell writes a repair's id under the key, where the repair is there and may be told so.
func (p *plugin) tell(ctx context.Context, args []string, key, doing string, may func(*remediations.Record, string) error, said func(*remediations.Record) string) error {
	node, id := args[0], ""
	if len(args) > 1 {
		id = args[1]
	}
	c, err := p.connect()
	if err != nil {
		return err
	}
	var about *remediations.Record
	_, err = p.writeAsRead(ctx, c, node, doing, func(n *corev1.Node) (ruling, error) {
		r, err := named(n, id)
		if err != nil {
			return ruling{}, err
		}
		about = r
		return ruling{word: word{key: r.ID}, about: r.ID}, may(r, node)
	})
	if err != nil {
		return err
	}
	p.say("%s", said(about))
	return nil
}
