package main

import (
	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/actions"
)

func (p *plugin) newApproveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approve NODE [ID]",
		Short: "Approve a repair that waits for a person",
		Long: "Approve lets the repair with this ID begin; without an ID, the one that waits on the node: its own, or that of the mesh\n" +
			"leader. All other guards still apply.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.one(cmd.Context(), args[0], actions.Approve(), byID(args))
		},
	}
}

func (p *plugin) newCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel NODE [ID]",
		Short: "End a repair, and take back what it did to the node",
		Long: "Cancel ends the repair with this ID; without an ID, the one on the node: its own, that of the mesh leader or that of a\n" +
			"sidecar. A call to the provider that has begun still runs to its end. Drydock takes back what the repair did to the\n" +
			"Node, for example a cordon; a mesh leadership that was moved stays moved.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.one(cmd.Context(), args[0], actions.Cancel(), byID(args))
		},
	}
}

// byID returns the id after the node, if given.
func byID(args []string) actions.Params {
	if len(args) > 1 {
		return actions.Params{"id": args[1]}
	}
	return nil
}
