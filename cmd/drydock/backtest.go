package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
)

// backtester is separate, so that the program that repairs nodes does not contain its code.
const backtester = "drydock-backtest"

func newBacktestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backtest --config FILE --prometheus URL",
		Short: "Show what Drydock would have done in the past",
		Long: "Backtest starts the program " +
			backtester +
			" with the same arguments. The program is beside this one or in PATH. It replays\n" +
			"what Prometheus recorded through the same decisions that Drydock makes live. drydock backtest --help prints its flags.",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := findBacktester()
			if err != nil {
				return err
			}
			run := exec.CommandContext(cmd.Context(), path, args...)
			run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			var ended *exec.ExitError
			if err := run.Run(); errors.As(err, &ended) {
				return cli.Exit(ended.ExitCode())
			} else if err != nil {
				return fmt.Errorf("starting %s: %w", path, err)
			}
			return nil
		},
	}
}

// findBacktester searches this program's folder first: a backtester there has the same version.
func findBacktester() (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), backtester)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(backtester)
	if err != nil {
		return "", fmt.Errorf("%s was not found beside this program or in PATH: build it with go build -o bin/%[1]s ./cmd/%[1]s", backtester)
	}
	return path, nil
}
