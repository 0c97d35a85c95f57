package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// asProgram in the environment makes the test binary a program that runs until a signal ends it.
const asProgram = "DRYDOCK_CLI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		Main(func(ctx context.Context, args []string) int {
			fmt.Println("runs with", args)
			<-ctx.Done()
			return 7
		})
	}
	os.Exit(m.Run())
}

// TestASignalEndsTheProgram with the code that the program gives, and not by the signal.
func TestASignalEndsTheProgram(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		program := exec.CommandContext(t.Context(), os.Args[0], "a", "b")
		program.Env = append(os.Environ(), asProgram+"=1")
		out, err := program.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, program.Start())
		line := make([]byte, len("runs with [a b]\n"))
		_, err = out.Read(line)
		require.NoError(t, err)
		require.Equal(t, "runs with [a b]\n", string(line))
		require.NoError(t, program.Process.Signal(signal))
		require.Error(t, program.Wait())
		require.Equal(t, 7, program.ProcessState.ExitCode(), signal)
	}
}

// TestErrorsEndTheProgram: an error of a command's own work, and one about how it was called, each
// with its code and its words.
func TestErrorsEndTheProgram(t *testing.T) {
	const hint = "Run 'the program --help' or 'the program COMMAND --help' for its usage.\n"
	two := func(err error) []string { return []string{"one: " + err.Error(), "two"} }
	for name, c := range map[string]struct {
		args   []string
		err    error
		lines  func(error) []string
		code   int
		stderr string
	}{
		"nothing":            {args: []string{"work"}},
		"work":               {args: []string{"work"}, err: errors.New("no"), code: ExitFailed, stderr: "the program: no\n"},
		"an answer":          {args: []string{"work"}, err: Exit(3), code: 3},
		"work, said already": {args: []string{"work"}, err: fmt.Errorf("checking: %w", ErrReported), code: ExitFailed},
		"usage":              {args: []string{"work"}, err: Usagef("--a is %d", 1), code: ExitUsage, stderr: "the program: --a is 1\n" + hint},
		"usage, wrapped":     {args: []string{"work"}, err: fmt.Errorf("reading: %w", Usage(errors.New("b"))), code: ExitUsage, stderr: "the program: reading: b\n" + hint},
		"unknown flag":       {args: []string{"work", "--fast"}, code: ExitUsage, stderr: "the program: unknown flag: --fast\n" + hint},
		"unknown command":    {args: []string{"play"}, code: ExitUsage, stderr: "the program: unknown command \"play\" for \"root\"\n" + hint},
		"several lines":      {args: []string{"work"}, err: errors.New("no"), lines: two, code: ExitFailed, stderr: "one: no\ntwo\n"},
		"several of usage":   {args: []string{"work"}, err: Usagef("no"), lines: two, code: ExitUsage, stderr: "one: no\ntwo\n" + hint},
	} {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "root"}
			root.AddCommand(&cobra.Command{Use: "work", RunE: func(*cobra.Command, []string) error { return c.err }})
			var stdout, stderr bytes.Buffer
			code := Program{Name: "the program", Lines: c.lines}.Execute(t.Context(), root, c.args, &stdout, &stderr)
			require.Equal(t, c.code, code)
			require.Equal(t, c.stderr, stderr.String())
			require.Empty(t, stdout.String())
		})
	}
}

// TestFlagsFromEnvironment: a flag's variable is read like the flag. The command line has priority.
func TestFlagsFromEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		env        map[string]string
		args       []string
		quick      bool
		name, says string
	}{
		"nothing":             {name: "default"},
		"its variable":        {env: map[string]string{"DRYDOCK_VERY_QUICK": "true", "DRYDOCK_NAME": "n"}, quick: true, name: "n"},
		"set to nothing":      {env: map[string]string{"DRYDOCK_NAME": ""}},
		"the command line":    {env: map[string]string{"DRYDOCK_NAME": "n"}, args: []string{"--name", "mine"}, name: "mine"},
		"the second variable": {env: map[string]string{"POD_NAME": "p"}, name: "p"},
		"the first one wins":  {env: map[string]string{"POD_NAME": "p", "DRYDOCK_NAME": ""}},
		"a wrong value":       {env: map[string]string{"DRYDOCK_VERY_QUICK": "perhaps"}, name: "default", says: "reading the environment variable DRYDOCK_VERY_QUICK, "},
		"no variable of help": {env: map[string]string{"DRYDOCK_HELP": "true"}, name: "default"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := &cobra.Command{}
			quick, value := cmd.Flags().Bool("very-quick", false, ""), cmd.Flags().String("name", "default", "")
			cmd.InitDefaultHelpFlag()
			require.NoError(t, cmd.ParseFlags(c.args))
			err := FlagsFromEnvironment(cmd, func(v string) (string, bool) { s, set := c.env[v]; return s, set }, map[string]string{"name": "POD_NAME"})
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.Equal(t, ExitUsage, Program{}.report(err, &strings.Builder{}))
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.quick, *quick)
			require.Equal(t, c.name, *value)
			help, err := cmd.Flags().GetBool("help")
			require.NoError(t, err)
			require.False(t, help)
		})
	}
}
