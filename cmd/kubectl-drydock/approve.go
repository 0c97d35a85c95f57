package main

import (
	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/actions"
)

func (p *plugin) newApproveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approve NODE [ID]",
		Short: "Approve a repair that waits for a person",
		Long: "Approve lets the repair with this ID begin. Without an ID, it approves the repair that waits on the node: a repair of the\n" +
			"node itself or of the mesh leader on it. All other guards still apply.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.one(cmd.Context(), args[0], actions.Approve(), byID(args))
		},
	}
}

func (p *plugin) newCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel NODE [ID]",
		Short: "End a repair, and undo its changes to the Node",
		Long: "Cancel ends the repair with this ID. Without an ID, it ends the repair on the node: of the node itself, of the mesh leader\n" +
			"on it, or of a sidecar. A call to the provider that has begun still runs to its end. Drydock undoes what the repair changed\n" +
			"on the Node, for example a cordon. If the repair moved a mesh leadership, the leadership stays with the new leader.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.one(cmd.Context(), args[0], actions.Cancel(), byID(args))
		},
	}
}

// byID takes the repair's ID from the argument after the node's name.
func byID(args []string) actions.Params {
	if len(args) > 1 {
		return actions.Params{"id": args[1]}
	}
	return nil
}
