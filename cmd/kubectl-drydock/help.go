package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usage returns cobra's template without kubectl's flags. Every command has those flags, and the
// list of them would hide the command's own flags.
func usage(template string) string {
	template = strings.ReplaceAll(template, ".LocalFlags.", ".LocalNonPersistentFlags.")
	before, rest, _ := strings.Cut(template, "{{if .HasAvailableInheritedFlags}}")
	_, after, _ := strings.Cut(rest, "{{end}}")
	return before + after + "\nUse \"kubectl drydock options\" for kubectl's flags, which every command takes: --context, --kubeconfig, --as, …\n"
}

func newOptionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Print kubectl's flags, which every command takes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fmt.Fprint(cmd.OutOrStdout(), "Every command takes these flags:\n\n"+cmd.Root().PersistentFlags().FlagUsages()); err != nil {
				return fmt.Errorf("printing the flags: %w", err)
			}
			return nil
		},
	}
}
