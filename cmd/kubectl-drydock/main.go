// Kubectl-drydock is the kubectl plugin: it shows what Drydock is doing to the nodes, and writes what a person wants of
// it. It writes nothing but annotations on Nodes, so whoever may patch nodes may use it, and nobody else.
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

// version is set by the linker in a release.
var version string

func main() {
	p := &plugin{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		flags:     genericclioptions.NewConfigFlags(true),
		now:       time.Now,
	}
	p.connect = p.connectByFlags
	cli.Main(p.execute)
}

// execute runs the command that args name and returns the exit code.
func (p *plugin) execute(ctx context.Context, args []string) int {
	root := p.newRootCommand()
	root.SetIn(p.In)
	return command.Execute(ctx, root, args, p.Out, p.ErrOut)
}

func (p *plugin) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-drydock",
		Short: "Show what Drydock is doing to the nodes, and tell it what you want",
		Long: "Drydock repairs nodes by the alerts about them. This plugin shows what it is doing and why it waits, and writes\n" +
			"what you want of it: annotations on the Node, nothing else, so that your rights on nodes decide what you may.",
		Version: version,
		// kubectl runs the plugin under the name that people type.
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl drydock"},
	}
	p.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().Lookup("namespace").Usage = "Namespace of Drydock's ledger; without it, the ledger is looked for in all"
	root.AddCommand(
		p.newStatusCommand(),
		p.newHistoryCommand(),
		p.newPauseCommand(),
		p.newResumeCommand(),
		p.newRepairCommand(),
		p.newApproveCommand(),
		p.newCancelCommand(),
		p.newResetCommand(),
		p.newBreakGlassCommand(),
		p.newCleanupCommand(),
	)
	return root
}
