package history_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

func openTSDB(t testing.TB, dir string, o history.Options) *history.Past {
	t.Helper()
	past, err := history.OpenTSDB(context.Background(), dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, past.Close()) })
	return past
}

func moments(t testing.TB, past *history.Past, from, until float64) []history.Moment {
	t.Helper()
	var out []history.Moment
	require.NoError(t, past.Moments(context.Background(), At(from), At(until), func(m history.Moment) error {
		out = append(out, m)
		return nil
	}))
	return out
}

func rulesOf(t testing.TB, text string) []history.RuleFile {
	t.Helper()
	path := t.TempDir() + "/rules.yaml"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	files, err := history.ReadRules(path)
	require.NoError(t, err)
	return files
}
