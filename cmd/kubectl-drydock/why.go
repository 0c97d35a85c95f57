package main

import (
	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
)

// The command why exits with 0 if Drydock has nothing to do.
const (
	exitHeld        = cli.Exit(3)
	exitUnderRepair = cli.Exit(4)
	exitUnknown     = cli.Exit(5)
)

func (p *plugin) newWhyCommand() *cobra.Command {
	var o output
	var from inspect.Sources
	cmd := &cobra.Command{
		Use:   "why NODE [--alertmanager URL] [--config FILE] [-o wide|json|yaml]",
		Short: "Show why a node is repaired, or why it is not",
		Long: "Why makes the same decision about the node as Drydock, from what you have the right to read. It prints the state first: what\n" +
			"holds the repair, until when, and what you can do about it. Then it prints the alerts about the node, the policy that each\n" +
			"alert matches, the next step, the last repairs, and the answer of each guard with its current value, also for the sidecars\n" +
			"and the mesh leader on the node. Why names everything that it could not read. A guard that needs one of these never shows\n" +
			"as passed. If no replica of Drydock leads, the first line says so.\n\n" +
			"The exit code is 0 if there is nothing to do, 3 if a repair is held, 4 if a repair is in progress or about to begin,\n" +
			"and 5 if the state is unknown, because you lack the right to read something that decides it.",
		Example: "  kubectl drydock why node-3\n  kubectl drydock why node-3 --alertmanager http://localhost:9093",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			s, err := p.reader(c).Observe(cmd.Context(), args[0], from)
			if err != nil {
				return err
			}
			answer := s.Why()
			if o.to != nil {
				err = o.print(answer, p.Out)
			} else {
				p.printStory(answer, s.Now, o.wide())
			}
			switch {
			case err != nil:
				return err
			case answer.State == inspect.Held:
				return exitHeld
			case answer.State == inspect.UnderRepair:
				return exitUnderRepair
			case answer.State == inspect.Unknown:
				return exitUnknown
			}
			return nil
		},
	}
	o.bind(cmd)
	cmd.Flags().StringArrayVar(&from.Alertmanagers, "alertmanager", nil, "URL of an Alertmanager, as this machine reaches it; may be given several times; without it, the plugin uses the alerts on the Node")
	cmd.Flags().StringVar(&from.Config, "config", "", "file with Drydock's configuration; without it, the plugin reads the ConfigMap of Drydock's chart")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	return cmd
}
