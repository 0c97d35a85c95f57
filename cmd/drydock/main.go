// Drydock turns Prometheus alerts into safe, verified repairs of Kubernetes nodes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/text"
)

var command = cli.Program{Name: "drydock", Lines: func(err error) []string {
	var faults config.Faults
	if errors.As(err, &faults) {
		return []string{faults.Error()}
	}
	return []string{fmt.Sprintf("drydock: %v", err)}
}}

func main() {
	cli.Main(func(ctx context.Context, args []string) int { return execute(ctx, args, os.Stdout, os.Stderr) })
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// The output may contain text of other users. text.Writer replaces control characters, so that
	// such text cannot control the terminal.
	return command.Execute(ctx, newRootCommand(), args, &text.Writer{Out: stdout}, stderr)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:               "drydock",
		Short:             "Turn Prometheus alerts into safe, verified repairs of Kubernetes nodes",
		Long:              "Drydock turns Prometheus alerts into safe, verified repairs of Kubernetes nodes.\n\nEvery flag may be set in the environment: --some-flag as DRYDOCK_SOME_FLAG. The flag wins.",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.FlagsFromEnvironment(cmd, os.LookupEnv, nil) },
	}
	root.AddCommand(
		newBacktestCommand(),
		newCheckCommand(),
		newPoliciesCommand(),
		newRulesCommand(),
		newRunCommand(),
		newSelfTestCommand(),
	)
	thisBuild().On(root)
	return root
}
