// Drydock turns Prometheus alerts into safe, verified repairs of Kubernetes nodes.
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
		Use:               "drydock",
		Short:             "Turns Prometheus alerts into safe, verified repairs of Kubernetes nodes",
		Long:              "Drydock turns Prometheus alerts into safe, verified repairs of Kubernetes nodes.\n\nEvery flag may be set in the environment: --some-flag as DRYDOCK_SOME_FLAG. The flag wins.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return flagsFromEnvironment(cmd, os.LookupEnv) },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newCheckCommand(),
		newPoliciesCommand(),
		newRulesCommand(),
		thisBuild().Command(),
		newRunCommand(),
	)
	markRunErrors(root)
	return root
}
