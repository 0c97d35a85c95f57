package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
)

func (p *plugin) newCanICommand() *cobra.Command {
	names := []string{}
	for _, a := range actions.All() {
		names = append(names, a.Name)
	}
	return &cobra.Command{
		Use:   "can-i [COMMAND [NODE]]",
		Short: "Show which of these commands you may use, and which role allows it",
		Long: "Can-i asks the API server whether you have the rights for each command that writes, on all nodes or on one node.\n" +
			"It shows which role gives you a right, or which right you lack.\n\n" +
			"The exit code is 0 if you may use every command in the output, and 1 if not.",
		Example:   "  kubectl drydock can-i\n  kubectl drydock can-i approve\n  kubectl drydock can-i reset node-3 --as jane",
		Args:      cobra.MaximumNArgs(2),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, node := actions.All(), ""
			if len(args) > 0 {
				a := actions.Named(args[0])
				if a == nil {
					return cli.Usagef("%q is not a command that writes; these are: %s", plain(args[0]), strings.Join(names, ", "))
				}
				asked = []*actions.Action{a}
			}
			if len(args) > 1 {
				node = args[1]
			}
			return p.canI(cmd.Context(), asked, node)
		},
	}
}

func (p *plugin) canI(ctx context.Context, asked []*actions.Action, node string) error {
	c, err := p.connect()
	if err != nil {
		return err
	}
	verbs := p.reader(c).AsksForVerbs(ctx)
	rows, missing := [][]string{{"COMMAND", "ALLOWED", "RIGHTS"}}, false
	for _, a := range asked {
		rights, err := a.Rights(ctx, c, node, verbs)
		if err != nil {
			return err
		}
		allowed, said := "yes", actions.Given(rights)
		if lacks := actions.Lacking(rights); lacks != "" {
			allowed, said, missing = "no", lacks, true
		}
		rows = append(rows, cells(a.Name, allowed, said))
	}
	printLines(p.Out, c.Cluster.Lines())
	(&table{out: p.Out}).print(rows...)
	if missing {
		return cli.ErrReported
	}
	return nil
}
