package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// The past that is backtested: some hours of samples at 30 s. A month of 5,000 nodes has five thousand million samples. What
// is read at once is two hours, however long the time is: the flag -hours shows whether a longer time needs more memory.
const (
	backtestHours = 3 // of the flag -hours, if it is not given
	backtestStep  = 30 * time.Second
)

// The samples begin at backtestSamples, and the backtest ten minutes later.
var (
	backtestSamples = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	backtestFrom    = backtestSamples.Add(10 * time.Minute)
)

// writePast writes what Prometheus has of kube-state-metrics and of node-problem-detector. One node in a hundred is not Ready for the
// second hour of each day.
func writePast(ctx context.Context, dir string, size int, until time.Time) error {
	type series struct {
		labels labels.Labels
		ref    int
		value  func(ill bool) float64
	}
	var all []series
	always := func(v float64) func(bool) float64 { return func(bool) float64 { return v } }
	for i := range size {
		node := nodeName(i)
		add := func(value func(bool) float64, name string, more ...string) {
			all = append(all, series{
				labels: labels.FromStrings(append([]string{"__name__", name, "job", "kube-state-metrics", "instance", "ksm:8080", "node", node}, more...)...), ref: i, value: value,
			})
		}
		add(always(1), "kube_node_info", "provider_id", "civo://"+node, "kubelet_version", "v1.36.3")
		add(always(float64(backtestSamples.Add(-24*time.Hour).Unix())), "kube_node_created")
		add(always(0), "kube_node_spec_unschedulable")
		for condition, well := range map[string]string{"Ready": "true", "DiskPressure": "false", "KernelDeadlock": "false"} {
			for _, status := range []string{"true", "false", "unknown"} {
				add(func(ill bool) float64 {
					is := status == well
					if ill && condition == "Ready" {
						is = status == "unknown"
					}
					if is {
						return 1
					}
					return 0
				}, "kube_node_status_condition", "condition", condition, "status", status)
			}
		}
	}
	for begin := backtestSamples; begin.Before(until); begin = begin.Add(time.Hour) {
		w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, (24 * time.Hour).Milliseconds())
		if err != nil {
			return err
		}
		for at := begin; at.Before(begin.Add(time.Hour)); at = at.Add(backtestStep) {
			app := w.Appender(ctx)
			for _, s := range all {
				if _, err := app.Append(0, s.labels, at.UnixMilli(), s.value(s.ref%100 == 7 && begin.Hour() == 1)); err != nil {
					return err
				}
			}
			if err := app.Commit(); err != nil {
				return err
			}
		}
		if _, err := w.Flush(ctx); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// servePast runs Prometheus on the blocks.
func servePast(ctx context.Context, dir string) (*lab.Process, string, error) {
	built, err := programs.Build(ctx, os.Stdout, "prometheus")
	if err != nil {
		return nil, "", err
	}
	port, err := lab.FreePort()
	if err != nil {
		return nil, "", err
	}
	config := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(config, []byte("global: {}\n"), 0o600); err != nil {
		return nil, "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	server, err := lab.StartProcess(ctx, lab.Spec{
		Name: "prometheus", Path: built["prometheus"], Log: filepath.Join(dir, "prometheus.log"), ReadyURL: "http://" + address + "/-/ready",
		Args: []string{
			"--config.file=" + config, "--web.listen-address=" + address, "--storage.tsdb.path=" + filepath.Join(dir, "tsdb"), "--storage.tsdb.retention.time=100y",
			"--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h", // the blocks stay as they are
		},
	})
	return server, "http://" + address, err
}
