package history_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// open opens a server. By default it is queried about each 30 seconds, which is the scrape
// interval.
func open(t testing.TB, url string, o history.Options) *history.Past {
	t.Helper()
	if o.Rules == nil && !o.Recorded {
		o.Rules = rulesOf(t, quiet)
	}
	if o.Step == 0 {
		o.Step = 30 * time.Second
	}
	past, err := history.OpenPrometheus(url, nil, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, past.Close()) })
	return past
}

func pastOf(t testing.TB, r *Recording, o history.Options) *history.Past {
	t.Helper()
	return open(t, r.Serve(), o)
}

func moments(t testing.TB, past *history.Past, from, until float64) []history.Moment {
	t.Helper()
	out, err := read(past, from, until)
	require.NoError(t, err)
	return out
}

func read(past *history.Past, from, until float64) (out []history.Moment, err error) {
	err = past.Moments(context.Background(), At(from), At(until), func(m history.Moment) error {
		out = append(out, m)
		return nil
	})
	return out, err
}

func rulesOf(t testing.TB, text string) []history.RuleFile {
	t.Helper()
	path := t.TempDir() + "/rules.yaml"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	files, err := history.ReadRules(path)
	require.NoError(t, err)
	return files
}
