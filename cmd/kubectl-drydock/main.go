// Kubectl-drydock is the kubectl plugin: it shows what Drydock is doing to the nodes, and writes what a person wants of
// it. It writes nothing but annotations on Nodes, so whoever may patch nodes may use it, and nobody else.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// version is set by the linker in a release.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	p := &plugin{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		flags:     genericclioptions.NewConfigFlags(true),
		now:       time.Now,
	}
	p.connect = p.connectByFlags
	code := p.execute(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// execute runs the command that args name and returns the exit code.
func (p *plugin) execute(ctx context.Context, args []string) int {
	root := p.newRootCommand()
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.ErrOut)
	return report(root.ExecuteContext(ctx), p.ErrOut)
}

func (p *plugin) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-drydock",
		Short: "Show what Drydock is doing to the nodes, and tell it what you want",
		Long: "Drydock repairs nodes by the alerts about them. This plugin shows what it is doing and why it waits, and writes\n" +
			"what you want of it: annotations on the Node, nothing else, so that your rights on nodes decide what you may.",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// kubectl runs the plugin under the name that people type.
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl drydock"},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
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
	)
	markRunErrors(root)
	return root
}
