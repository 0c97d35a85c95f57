// Drydock-agent answers and makes probes of forwarding between the nodes of a mesh that Kilo keeps. It runs on each node,
// on the pod network, without privileges.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs the command that args name and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return report(root.ExecuteContext(ctx), stderr)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "drydock-agent",
		Short: "Answers and makes probes of forwarding between the nodes of a mesh",
		Long: "Drydock's agent runs on every node of a mesh that Kilo keeps. It answers the probes of its peers, and probes\n" +
			"leaders and members with new TCP and UDP flows, so that metrics tell which relay is at fault.\n\n" +
			"Every flag may be set in the environment: --some-flag as DRYDOCK_SOME_FLAG, --node-name as NODE_NAME and\n" +
			"--namespace as POD_NAMESPACE too. The flag wins.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return flagsFromEnvironment(cmd, os.LookupEnv) },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(thisBuild().Command(), newRunCommand())
	markRunErrors(root)
	return root
}
