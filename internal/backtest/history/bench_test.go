package history_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// Reading is compared with the queries of Prometheus' own rule backfill, which asks for each rule two hours at once, over
// the same blocks.
func BenchmarkReading(b *testing.B) {
	const nodes, hours = 100, 6
	r := New(b)
	machines := make([]Machine, nodes)
	Every(0, hours*60, func(when time.Time, minutes float64) {
		for i := range machines {
			machines[i] = Machine{Name: fmt.Sprintf("node-%d", i)}
			if i == int(minutes)/10 {
				machines[i].Ready = "unknown"
			}
		}
		r.Scrape(when, "a", KubeStateMetrics("a", machines...))
	})
	dir := r.Blocks(2 * time.Hour)
	var files []history.RuleFile
	for _, name := range []string{"NodeNotReady", "NodeReadinessFlapping", "NodesNotReady", "NodeDiskPressure", "NodeHeartbeatLost", "NodeKernelDeadlock"} {
		read, err := history.ReadRules(rulesFolder + "/" + name + ".yaml")
		require.NoError(b, err)
		files = append(files, read...)
	}
	var backfill time.Duration
	b.ResetTimer()
	for b.Loop() {
		began := time.Now()
		backfillQueries(b, dir, files, hours)
		backfill += time.Since(began)
		past, err := history.OpenTSDB(b.Context(), dir, history.Options{Rules: files, Interval: 30 * time.Second})
		require.NoError(b, err)
		require.NoError(b, past.Moments(b.Context(), At(0), At(hours*60), func(history.Moment) error { return nil }))
		require.NoError(b, past.Close())
	}
	b.ReportMetric(float64(b.Elapsed()-backfill)/float64(backfill), "x-backfill")
}

func backfillQueries(b *testing.B, dir string, files []history.RuleFile, hours int) {
	db, err := tsdb.OpenDBReadOnly(dir, b.TempDir(), nil)
	require.NoError(b, err)
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 200_000_000, Timeout: time.Hour, Parser: parser.NewParser(parser.Options{}), EnableAtModifier: true,
	})
	for _, file := range files {
		var content struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
		require.NoError(b, yaml.Unmarshal(file.Text, &content))
		for from := 0; from < hours; from += 2 {
			query, err := engine.NewRangeQuery(context.Background(), storage.QueryableFunc(db.Querier), nil, content.Groups[0].Rules[0].Expr,
				At(float64(from*60)), At(float64(from*60+120)-0.5), 30*time.Second)
			require.NoError(b, err)
			require.NoError(b, query.Exec(context.Background()).Err)
			query.Close()
		}
	}
	require.NoError(b, db.Close())
}
