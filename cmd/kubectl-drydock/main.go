// Kubectl-drydock is the kubectl plugin. It shows what Drydock does to the nodes, and writes
// people's requests as annotations of Nodes. It changes only Nodes, so the right to patch nodes
// decides who may use its commands that write.
package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"drydock.dev/drydock/internal/cli"
)

func main() {
	p := newPlugin(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, genericclioptions.NewConfigFlags(true))
	p.now, p.connect = time.Now, p.connectByFlags
	cli.Main(func(ctx context.Context, args []string) int { return p.execute(ctx, calledAs(os.Args[0], args)) })
}

func (p *plugin) execute(ctx context.Context, args []string) int {
	root := p.newRootCommand()
	root.SetIn(p.In)
	return command.Execute(ctx, root, args, p.Out, p.ErrOut)
}

func (p *plugin) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-drydock",
		Short: "Show what Drydock does to the nodes, and decide about repairs",
		Long: "Drydock repairs nodes when alerts say that they are unhealthy. This plugin shows what Drydock does and why it waits, and\n" +
			"passes on your decisions. It changes only Nodes, so your rights on nodes decide what you may do.",
		Version: thisBuild().Details(buildInfo()),
		// kubectl runs the plugin under the name that people type.
		Annotations:      map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl drydock"},
		PersistentPreRun: func(called *cobra.Command, _ []string) { p.commands = commandsOf(called) },
	}
	p.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().Lookup("namespace").Usage = "Namespace of Drydock's ledger; without it, the plugin looks for the ledger in all namespaces"
	root.AddCommand(
		p.completes(p.newStatusCommand(), many, ""),
		p.completes(p.newWhyCommand(), 1, ""),
		p.completes(p.newHistoryCommand(), 1, ""),
		p.completes(p.newReportCommand(), many, ""),
		p.newRunbookCommand(),
		p.newUICommand(),
		p.writes(p.completes(p.newPauseCommand(), many, "")),
		p.writes(p.completes(p.newResumeCommand(), many, "")),
		p.writes(p.completes(p.newRepairCommand(), 1, "")),
		p.writes(p.completes(p.newApproveCommand(), 1, underRepair)),
		p.writes(p.completes(p.newCancelCommand(), 1, underRepair)),
		p.writes(p.completes(p.newResetCommand(), 1, underRepair)),
		p.writes(p.completes(p.newBreakGlassCommand(), 1, "")),
		p.newCanICommand(),
		p.writes(p.newCleanupCommand()),
		p.newVersionCommand(),
		newOptionsCommand(),
	)
	root.SetUsageTemplate(usage(root.UsageTemplate()))
	return root
}
