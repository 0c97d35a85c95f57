package main

import (
	"errors"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
)

func (p *plugin) newResetCommand() *cobra.Command {
	var policy string
	cmd := &cobra.Command{
		Use:   "reset NODE [ID] | --policy NAME",
		Short: "Remove an exhausted repair, once the node is fixed",
		Long: "Reset removes the exhausted repair of a node, or a record that cannot be read, together with its counts, so that\n" +
			"the node can be repaired again; also that of the mesh leader on the node, and those of sidecars. A stopped policy starts again\n" +
			"after a reset of one of its nodes. On a node that has fewer GPUs than Drydock expects, reset accepts the number; it also\n" +
			"ends the cancels of the node's alerts. With an ID, nothing is reset unless this repair is exhausted. With --policy, the plugin resets the first exhausted node of this policy or, where\n" +
			"there is none and the policy is stopped, a node that the policy takes.",
		Example: "  kubectl drydock reset node-3\n  kubectl drydock reset --policy node-not-ready",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && policy != "":
				return errors.New("a node and --policy were both given, and only one of them can be meant")
			case len(args) == 0 && policy == "":
				return cli.Usage(errors.New("say what is to be reset: a node, or --policy NAME"))
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			var said string
			if policy == "" {
				said, err = actions.ResetNode(cmd.Context(), p.reader(c), p.writer(c), args[0], byID(args))
			} else {
				said, err = actions.ResetPolicy(cmd.Context(), p.reader(c), p.writer(c), policy)
			}
			if err != nil {
				return inCluster{c.Cluster, err}
			}
			p.wrote(c, said)
			return nil
		},
	}
	cmd.Flags().StringVar(&policy, "policy", "", "start this stopped policy again: reset one of its nodes")
	return cmd
}
