package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/rules"
)

// The runbooks are in the program: the cluster may be down, and a person may not reach the page
// that an alert links to.
func (p *plugin) newRunbookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "runbook [ALERT]",
		Short: "Print the runbook of an alert",
		Long: "Runbook prints what to do about an alert that Drydock ships. Without a name it prints the names of these alerts.\n" +
			"The runbooks are part of the plugin, so it needs no cluster and no network for them.",
		Example: "  kubectl drydock runbook NodeNotReady",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names, err := rules.Runbooks()
			if err != nil {
				cobra.CompErrorln(err.Error())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := rules.Runbooks()
			if err != nil {
				return err
			}
			out := strings.Join(names, "\n") + "\n"
			if len(args) == 1 {
				if !slices.Contains(names, args[0]) {
					return cli.Usagef("there is no runbook for the alert %q; %s", args[0], similar(args[0], names))
				}
				if out, err = rules.Runbook(args[0]); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprint(p.Out, out); err != nil {
				return fmt.Errorf("printing the runbook: %w", err)
			}
			return nil
		},
	}
}

// similar prefers names that contain the typed text to names that only resemble it.
func similar(typed string, names []string) string {
	near := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return typed == "" || !strings.Contains(strings.ToLower(name), strings.ToLower(typed))
	})
	if one := text.Nearest(typed, names); len(near) == 0 && one != "" {
		near = []string{one}
	}
	if len(near) == 0 {
		return "`kubectl drydock runbook` lists the alerts that have one"
	}
	return fmt.Sprintf("did you mean %s?", strings.Join(near, ", "))
}
