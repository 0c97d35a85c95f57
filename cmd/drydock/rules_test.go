package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/rules"
)

func TestRules(t *testing.T) {
	files, err := rules.Names()
	require.NoError(t, err)
	code, all, _ := call(t, "rules")
	require.Equal(t, cli.ExitOK, code)
	var groups []rulefmt.RuleGroup
	for _, file := range files {
		require.Contains(t, all, "\n# rules/"+file+"\n")
		want, err := rules.Read(file)
		require.NoError(t, err)
		code, one, _ := call(t, "rules", strings.TrimSuffix(file, ".yaml"))
		require.Equal(t, cli.ExitOK, code)
		require.Equal(t, string(want), one)
		groups = append(groups, parsedByPrometheus(t, one)...)
	}
	require.Equal(t, groups, parsedByPrometheus(t, all), "the output without a name is one rule file with all groups")
}

// parsedByPrometheus returns the groups that Prometheus loads from this rule file: those of its
// first YAML document.
func parsedByPrometheus(t *testing.T, file string) []rulefmt.RuleGroup {
	t.Helper()
	parsed, errs := rulefmt.Parse([]byte(file), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	return parsed.Groups
}
