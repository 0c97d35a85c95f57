package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// dryRun is the value of --dry-run. If true, the API server only checks rights and admission, and
// writes nothing.
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

func (p *plugin) writes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Var(&p.dryRun, "dry-run", "none, or server: the API server checks rights and admission, and writes nothing")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
