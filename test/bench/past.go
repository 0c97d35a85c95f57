package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// Some hours of samples at an interval of 30 s. A month of 5,000 nodes would have five thousand
// million samples. The backtest reads two hours at once, however long the past is. The flag -hours
// shows whether a longer past needs more memory.
const (
	backtestHours = 3 // the default of the flag -hours
	backtestStep  = 30 * time.Second
)

// The samples begin at backtestSamples. The backtest begins ten minutes later.
var (
	backtestSamples = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	backtestFrom    = backtestSamples.Add(10 * time.Minute)
)

// The samples are as Prometheus has them from kube-state-metrics and node-problem-detector. One
// node in a hundred is not Ready in the second hour of each day.
func writePast(ctx context.Context, dir string, size int, until time.Time) error {
	built, err := programs.Build(ctx, os.Stdout, "promtool")
	if err != nil {
		return err
	}
	all := pastSeries(size)
	for begin := backtestSamples; begin.Before(until); begin = begin.Add(time.Hour) {
		if err := writeHour(filepath.Join(dir, "samples"), all, begin); err != nil {
			return err
		}
		run := exec.CommandContext(ctx, built["promtool"], "tsdb", "create-blocks-from", "openmetrics", filepath.Join(dir, "samples"), filepath.Join(dir, "tsdb"))
		if text, err := run.CombinedOutput(); err != nil {
			return fmt.Errorf("promtool: %w: %s", err, text)
		}
	}
	return os.Remove(filepath.Join(dir, "samples"))
}

type pastSeriesOf struct {
	name  string
	node  int
	value func(ill bool) float64
}

func pastSeries(size int) (all []pastSeriesOf) {
	always := func(v float64) func(bool) float64 { return func(bool) float64 { return v } }
	for i := range size {
		node := nodeName(i)
		add := func(value func(bool) float64, name, more string) {
			all = append(all, pastSeriesOf{
				name: fmt.Sprintf(`%s{job="kube-state-metrics",instance="ksm:8080",node="%s"%s}`, name, node, more), node: i, value: value,
			})
		}
		add(always(1), "kube_node_info", fmt.Sprintf(`,provider_id="civo://%s",kubelet_version="v1.36.3"`, node))
		add(always(float64(backtestSamples.Add(-24*time.Hour).Unix())), "kube_node_created", "")
		add(always(0), "kube_node_spec_unschedulable", "")
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
				}, "kube_node_status_condition", fmt.Sprintf(`,condition="%s",status="%s"`, condition, status))
			}
		}
	}
	return all
}

func writeHour(path string, all []pastSeriesOf, begin time.Time) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	for _, s := range all {
		value := s.value(s.node%100 == 7 && begin.Hour() == 1)
		for at := begin; at.Before(begin.Add(time.Hour)); at = at.Add(backtestStep) {
			_, _ = fmt.Fprintf(out, "%s %v %d\n", s.name, value, at.Unix()) // Flush returns the error
		}
	}
	_, _ = out.WriteString("# EOF\n")
	return errors.Join(out.Flush(), file.Close())
}

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
			"--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h", // so that Prometheus does not compact the blocks
		},
	})
	return server, "http://" + address, err
}
