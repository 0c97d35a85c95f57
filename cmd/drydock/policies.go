package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
)

func newPoliciesCommand() *cobra.Command {
	var file, output string
	var diff bool
	cmd := &cobra.Command{
		Use:   "policies [--config FILE]",
		Short: "Print the policies in the order that Drydock tries them",
		Long: "Policies prints the shipped policies. With a configuration, it prints the policies of the configuration, and the shipped\n" +
			"ones that the configuration does not replace. -o yaml prints them with all defaults, as the key policies of a\n" +
			"configuration. -o yaml --diff prints only what the configuration changes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "yaml" {
				return cli.Usagef("--output is %q; write table or yaml", output)
			}
			if diff && (output != "yaml" || file == "") {
				return cli.Usagef("--diff needs -o yaml and --config FILE")
			}
			c := config.Shipped()
			if file != "" {
				var err error
				// Printing policies needs no secrets.
				if c, _, err = config.Load(file, config.Options{SkipFiles: true}); err != nil {
					return printFaults(cmd.OutOrStdout(), err)
				}
			}
			if output == "table" {
				return printPolicies(cmd.OutOrStdout(), c.Policies)
			}
			render := c.PoliciesYAML
			if diff {
				render = c.ChangesYAML
			}
			text, err := render()
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(text); err != nil {
				return fmt.Errorf("printing policies, %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file; without it, only the shipped policies")
	cmd.Flags().BoolVar(&diff, "diff", false, "with -o yaml: only what differs from the shipped policies")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or yaml")
	return cmd
}

func printPolicies(out io.Writer, policies []config.PolicyInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tMODE\tMATCH\tNODES\tPLAN\tFROM")
	for _, p := range policies {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Mode, p.Matchers(), p.Selector(), p.Steps(), p.From)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing policies, %w", err)
	}
	return nil
}
