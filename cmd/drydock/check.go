package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
)

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration and say everything that is wrong with it",
		Long: "Check prints FILE:LINE: path: message for every fault and ends with 1, or prints FILE: ok, which provider serves\n" +
			"which Nodes, and warnings, and ends with 0. It looks at the files that the configuration names, as run does.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, warnings, err := config.Load(args[0], config.Options{})
			if err != nil {
				return printFaults(cmd.OutOrStdout(), err)
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", args[0]); err != nil {
				return fmt.Errorf("printing the result, %w", err)
			}
			for _, p := range cfg.Core.Providers {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: providers.%s carries out %s for %s\n", args[0], p.Name, strings.Join(p.Steps, ", "), p.Serves()); err != nil {
					return fmt.Errorf("printing the providers, %w", err)
				}
			}
			for _, w := range warnings {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), w); err != nil {
					return fmt.Errorf("printing the warnings, %w", err)
				}
			}
			return nil
		},
	}
}

// printFaults prints the faults of a configuration, one a line, and returns the error that ends the process with 1.
func printFaults(out io.Writer, err error) error {
	var faults config.Faults
	if !errors.As(err, &faults) {
		return err
	}
	if _, err := fmt.Fprintln(out, faults); err != nil {
		return fmt.Errorf("printing the faults, %w", err)
	}
	return cli.ErrReported
}
