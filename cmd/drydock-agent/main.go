// Drydock-agent runs on each node of a Kilo mesh. The agents probe each other, which shows whether
// the mesh forwards packets between the nodes. An agent uses the pod network and needs no
// privileges.
package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
)

var command = cli.Program{Name: "drydock-agent"}

// downward maps a flag to its environment variable, which a Pod fills from the downward API.
var downward = map[string]string{"node-name": "NODE_NAME", "namespace": "POD_NAMESPACE"}

func main() {
	cli.Main(func(ctx context.Context, args []string) int { return execute(ctx, args, os.Stdout, os.Stderr) })
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return command.Execute(ctx, newRootCommand(), args, stdout, stderr)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "drydock-agent",
		Short: "Probe the network between the nodes of a Kilo mesh",
		Long: "Drydock's agent runs on every node of a Kilo mesh. It answers the probes of the other agents, and probes\n" +
			"leaders and members with new TCP and UDP flows, so that metrics show which relay is at fault.\n\n" +
			"Every flag may be set in the environment: --some-flag as DRYDOCK_SOME_FLAG, --node-name as NODE_NAME and\n" +
			"--namespace as POD_NAMESPACE too. The flag wins.",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return cli.FlagsFromEnvironment(cmd, os.LookupEnv, downward)
		},
	}
	root.AddCommand(newRunCommand())
	thisBuild().On(root)
	return root
}
