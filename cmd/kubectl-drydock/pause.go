package main

import (
	"context"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
)

func (p *plugin) newPauseCommand() *cobra.Command {
	var why, selector string
	var length model.Duration
	cmd := &cobra.Command{
		Use:   "pause NODE... | -l SELECTOR [--for 2h] [--why TEXT]",
		Short: "Hold all repairs of a node",
		Long: "Pause holds the next step of Drydock on the node, also in the middle of a repair. Drydock still verifies and records\n" +
			"what it has issued, and starts nothing new. Without --for, the pause ends with resume.",
		Example: "  kubectl drydock pause node-3 --for 2h --why 'disk swap, ticket 4711'\n  kubectl drydock pause -l topology.kubernetes.io/zone=fra1 --for 2h",
		RunE: func(cmd *cobra.Command, nodes []string) error {
			given := actions.Params{"why": why}
			if cmd.Flags().Changed("for") {
				given["for"] = length.String()
			}
			return p.each(cmd.Context(), nodes, selector, actions.Pause(), given)
		},
	}
	selects(cmd, &selector)
	cmd.Flags().Var(&length, "for", "how long the pause lasts, for example 30m, 2h or 1d; without it, until kubectl drydock resume")
	cmd.Flags().Lookup("for").DefValue = ""
	cmd.Flags().StringVar(&why, "why", "", "the reason, for everyone who reads the node's state later")
	return cmd
}

func (p *plugin) newResumeCommand() *cobra.Command {
	var selector string
	cmd := &cobra.Command{
		Use:   "resume NODE... | -l SELECTOR",
		Short: "End a node's pause or break-glass",
		Long:  "Resume removes the pause and the break-glass from a node. Drydock may repair the node again.",
		RunE: func(cmd *cobra.Command, nodes []string) error {
			return p.each(cmd.Context(), nodes, selector, actions.Resume(), nil)
		},
	}
	selects(cmd, &selector)
	return cmd
}

// If one node's request is refused, each continues with the next node.
func (p *plugin) each(ctx context.Context, nodes []string, selector string, a *actions.Action, given actions.Params) error {
	prepared, err := a.Prepare(given, p.now())
	switch {
	case err != nil:
		return err
	case len(nodes) == 0 && selector == "":
		return cli.Usagef("name at least one node, or select nodes with -l")
	case len(nodes) > 0 && selector != "":
		return cli.Usagef("nodes and -l were both given; give one of them")
	}
	c, err := p.connect()
	if err != nil {
		return err
	}
	if selector != "" {
		if nodes, err = selected(ctx, p.reader(c), selector); err != nil {
			return err
		}
	}
	var refused refusals
	for _, node := range nodes {
		said, err := prepared.Apply(ctx, p.writer(c), node)
		if err != nil {
			refused = append(refused, inCluster{c.Cluster, err})
			continue
		}
		p.wrote(c, said)
	}
	if len(refused) == 0 {
		return nil
	}
	return refused
}

func (p *plugin) one(ctx context.Context, node string, a *actions.Action, given actions.Params) error {
	prepared, err := a.Prepare(given, p.now())
	if err != nil {
		return err
	}
	c, err := p.connect()
	if err != nil {
		return err
	}
	said, err := prepared.Apply(ctx, p.writer(c), node)
	if err != nil {
		return inCluster{c.Cluster, err}
	}
	p.wrote(c, said)
	return nil
}

func (p *plugin) newBreakGlassCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "break-glass NODE --why TEXT",
		Short: "Let people work on a node that is under repair",
		Long: "Break-glass makes admission allow every change of the node, also while it is under repair. Drydock starts nothing new\n" +
			"there. Break-glass ends with resume, or after an hour.",
		Example: "  kubectl drydock break-glass node-3 --why 'must drain now, ticket 4711'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.one(cmd.Context(), args[0], actions.BreakGlass(), actions.Params{"why": why})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "required: the reason, for everyone who reads the node's state later")
	return cmd
}
