package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// dryRun says whether the API server is only asked what it would answer: rights and admission are checked, nothing is written.
type dryRun bool

func (d *dryRun) String() string {
	if *d {
		return "server"
	}
	return "none"
}

func (d *dryRun) Type() string { return "string" }

func (d *dryRun) Set(v string) error {
	if v != "none" && v != "server" {
		return fmt.Errorf("write none or server")
	}
	*d = v == "server"
	return nil
}

// writes gives a command that writes the flag --dry-run.
func (p *plugin) writes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Var(&p.dryRun, "dry-run", "none, or server: the API server checks rights and admission, and writes nothing")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
