package logs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/logs"
)

func options(t *testing.T, args ...string) logs.Options {
	t.Helper()
	var o logs.Options
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddTo(f)
	require.NoError(t, f.Parse(args))
	return o
}

// TestFormatsAndLevels: each line has the fields that were given, in both formats; a level hides
// what is below it.
func TestFormatsAndLevels(t *testing.T) {
	t.Parallel()
	for level, want := range map[string][]string{"debug": {"debug", "info", "error"}, "info": {"info", "error"}, "error": {"error"}} {
		var out bytes.Buffer
		log, err := options(t, "--log-format=json", "--log-level="+level).New(&out)
		require.NoError(t, err)
		log = log.WithName("engine")
		log.V(1).Info("a detail", "node", "n1")
		log.Info("something", "node", "n1")
		log.Error(errors.New("no"), "something failed", "node", "n1")
		var got []string
		for line := range strings.Lines(out.String()) {
			var fields map[string]string
			require.NoError(t, json.Unmarshal([]byte(line), &fields))
			require.NotEmpty(t, fields["time"])
			require.NotEmpty(t, fields["msg"])
			require.Equal(t, "n1", fields["node"])
			require.Equal(t, "engine", fields["logger"])
			require.Equal(t, fields["level"] == "error", fields["err"] == "no", line)
			got = append(got, fields["level"])
		}
		require.Equal(t, want, got, level)
	}
	var out bytes.Buffer
	log, err := options(t).New(&out)
	require.NoError(t, err)
	log.V(1).Info("a detail")
	log.Info("something", "node", "n1")
	require.Contains(t, out.String(), `level=info msg=something node=n1`)
	require.NotContains(t, out.String(), "a detail")
}

// TestAnUnknownFormatOrLevelIsRefused: bad input never becomes a default.
func TestAnUnknownFormatOrLevelIsRefused(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--log-format=xml":   `--log-format is "xml": write json or text`,
		"--log-level=":       `--log-level is "": write debug, info or error`,
		"--log-level=chatty": `--log-level is "chatty": write debug, info or error`,
	} {
		_, err := options(t, arg).New(&bytes.Buffer{})
		require.EqualError(t, err, want)
	}
}
