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
			"the node can be repaired again. It also removes exhausted repairs of the node's sidecars and of a mesh leader on it. After a reset\n" +
			"of one of its nodes, a stopped policy starts again. If a node has fewer GPUs than Drydock expects, reset accepts the new\n" +
			"number. Alerts whose repair was cancelled can start a repair again. With an ID, it resets nothing unless this repair is exhausted.\n" +
			"With --policy, the plugin resets the first exhausted node of this policy. If no node is exhausted and the policy is stopped,\nit resets a node that the policy repairs.",
		Example: "  kubectl drydock reset node-3\n  kubectl drydock reset --policy node-not-ready",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && policy != "":
				return errors.New("a node and --policy were both given; give one of them")
			case len(args) == 0 && policy == "":
				return cli.Usage(errors.New("name a node, or a policy with --policy NAME"))
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
