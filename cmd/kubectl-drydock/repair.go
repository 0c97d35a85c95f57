package main

import (
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/actions"
)

func (p *plugin) newRepairCommand() *cobra.Command {
	var with, policy string
	cmd := &cobra.Command{
		Use:   "repair NODE --with REMEDIATION | --policy NAME",
		Short: "Request a repair of a node without an alert",
		Long: "Repair requests one remediation, or the whole plan of a policy. All guards apply, except the one for the alert:\n" +
			"the repair waits while a silence, a limit or a breaker holds it.",
		Example: "  kubectl drydock repair node-3 --with reboot\n  kubectl drydock repair node-3 --policy node-not-ready",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.one(cmd.Context(), args[0], actions.Repair(), actions.Params{"with": with, "policy": policy})
		},
	}
	cmd.Flags().StringVar(&with, "with", "", "the remediation: "+strings.Join(actions.NodeRemediations(), ", "))
	cmd.Flags().StringVar(&policy, "policy", "", "the policy: its whole plan is carried out")
	return cmd
}
