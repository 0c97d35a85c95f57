package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drydock.dev/drydock/internal/backtest"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

const (
	backtestPart = "backtest"
	backtestFile = "backtest.yaml"
	// The number of nodes in BenchmarkMonth.
	backtestMonthNodes = 5000
)

// These rules are evaluated over an invented past (see past.go).
var backtestRules = []string{"NodeNotReady", "NodeReadinessFlapping", "NodesNotReady", "NodeDiskPressure", "NodeHeartbeatLost", "NodeKernelDeadlock"}

const backtestConfig = `
apiVersion: drydock.dev/v1alpha1
kind: Config
mode: observe
receiver: {tokenFile: /token}
alertmanager: {urls: ["http://alertmanager:9093"]}
providers:
  civo: {clusterID: 9c89d8b9-463d-45f2-8928-455eb3f3726a, region: LON1, apiKeyFile: /key}
`

type spent struct {
	cpu, clock time.Duration
	peak       float64 // the highest resident memory in MB, including mapped blocks
}

// measureBacktest compares a whole backtest with Prometheus' own backfill of rules by promtool,
// with the same rules at the same interval. Both figures include the Prometheus that answers. In
// addition, the backtest reads the fleet and decides. No cluster is needed.
func measureBacktest(ctx context.Context, o options, size int, t *table) error {
	dir, err := os.MkdirTemp("", "drydock-bench-backtest-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	until := backtestSamples.Add(time.Duration(o.hours) * time.Hour)
	began := time.Now()
	if err := writePast(ctx, dir, size, until); err != nil {
		return fmt.Errorf("writing the past: %w", err)
	}
	fmt.Printf("         %d hours of %d nodes were written in %.1f s\n", o.hours, size, time.Since(began).Seconds())
	drydock := filepath.Join(dir, "drydock-backtest")
	if err := programs.Compile(ctx, drydock, "./cmd/drydock-backtest"); err != nil {
		return err
	}
	var files []string
	for _, name := range backtestRules {
		files = append(files, filepath.Join(dir, "rules", name+".yaml"))
	}
	if err := copyRules(dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, backtestFile), []byte(backtestConfig), 0o600); err != nil {
		return err
	}
	server, address, err := servePast(ctx, dir)
	if err != nil {
		return err
	}
	defer server.Kill()
	var ours, theirs, servers, clocks []time.Duration
	var peak float64
	var totals backtest.Totals
	for range o.rounds {
		own, err := runBackfill(ctx, server, address, dir, files, until)
		if err != nil {
			return err
		}
		before, err := cpuOf(server.PID())
		if err != nil {
			return err
		}
		mine, found, err := runBacktest(ctx, dir, drydock, until, "--prometheus", address)
		if err != nil {
			return err
		}
		after, err := cpuOf(server.PID())
		if err != nil {
			return err
		}
		if totals = found.Runs[0].Totals; totals.Acted == 0 {
			return fmt.Errorf("the backtest repaired nothing: %+v", totals)
		}
		ours, theirs, servers, clocks, peak = append(ours, mine.cpu), append(theirs, own), append(servers, after-before), append(clocks, mine.clock), max(peak, mine.peak)
	}
	t.add(row{
		what: fmt.Sprintf("backtest: processor time of both for %d h, 6 rules at 30 s (%s by the clock)", o.hours, ms(median(clocks))), nodes: size,
		measured:  fmt.Sprintf("%s; %s of it Prometheus", ms(median(ours)+median(servers)), ms(median(servers))),
		reference: "promtool tsdb create-blocks-from rules, and the Prometheus that answers it: " + ms(median(theirs)),
		ratio:     times(float64(median(ours)+median(servers)), float64(median(theirs))), target: "-",
	})
	t.add(row{
		what: "backtest: resident memory, at most", nodes: size, measured: fmt.Sprintf("%.0f MB", peak), reference: "VmHWM",
		ratio: "-", target: "< 1 GB", verdict: reached(peak < 1000),
	})
	if err := measureState(ctx, dir, drydock, address, size, until, totals, t); err != nil {
		return err
	}
	if size != backtestMonthNodes {
		return nil
	}
	return measureDecisions(ctx, o, median(theirs), t)
}

// BenchmarkMonth decides about 30 days of that many nodes without reading them, so the time for
// reading and the time for deciding are shown separately.
func measureDecisions(ctx context.Context, o options, backfill time.Duration, t *table) error {
	run := exec.CommandContext(ctx, "test/go", "test", "-run", "xxx", "-bench", "^BenchmarkMonth$", "-benchtime", "1x",
		"-count", strconv.Itoa(o.rounds), "./internal/backtest") // with the flags of the programs that are compiled already
	text, err := run.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the decisions about a month: %w: %s", err, text)
	}
	var clock, cpu []time.Duration
	var peak float64
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "BenchmarkMonth") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("reading %q: %w", line, err)
			}
			switch fields[i+1] {
			case "ns/op":
				clock = append(clock, time.Duration(v))
			case "processor-s":
				cpu = append(cpu, time.Duration(v*float64(time.Second)))
			case "MB-peak":
				peak = max(peak, v)
			}
		}
	}
	if len(clock) != o.rounds || len(cpu) != o.rounds {
		return fmt.Errorf("the decisions about a month: no figures in %s", text)
	}
	month := float64(30*24) / float64(o.hours)
	t.add(row{
		what: "backtest: decisions about 30 days, without reading, by the clock", nodes: backtestMonthNodes, measured: ms(median(clock)),
		reference: "two idle cores", ratio: "-", target: "< 10 s", verdict: reached(median(clock) < 10*time.Second),
	})
	t.add(row{
		what: "backtest: … their processor time", nodes: backtestMonthNodes, measured: ms(median(cpu)),
		reference: fmt.Sprintf("%.0f times the backfill of %d h: %s", month, o.hours, ms(time.Duration(month*float64(backfill)))),
		ratio:     fmt.Sprintf("%.4f", float64(median(cpu))/(month*float64(backfill))), target: "-",
	})
	t.add(row{
		what: "backtest: … resident memory, at most", nodes: backtestMonthNodes, measured: fmt.Sprintf("%.0f MB", peak), reference: "VmHWM",
		ratio: "-", target: "< 1 GB", verdict: reached(peak < 1000),
	})
	return nil
}

// One run writes its state an hour before the end, and another run continues from that state.
func measureState(ctx context.Context, dir, program, address string, size int, until time.Time, totals backtest.Totals, t *table) error {
	file := filepath.Join(dir, "state")
	more := []string{"--prometheus", address, "--state", file}
	if _, _, err := runBacktest(ctx, dir, program, until.Add(-time.Hour), more...); err != nil {
		return err
	}
	took, found, err := runBacktest(ctx, dir, program, until, more...)
	if err != nil {
		return err
	}
	if got := found.Runs[0].Totals; got != totals {
		return fmt.Errorf("the backtest that went on from a state found %+v, one of all the time %+v", got, totals)
	}
	state, err := os.Stat(file)
	if err != nil {
		return err
	}
	t.add(row{
		what: fmt.Sprintf("backtest: file of --state after %.0f h", until.Sub(backtestSamples).Hours()), nodes: size, measured: fmt.Sprintf("%.2f MB", float64(state.Size())/1e6),
		reference: "-", ratio: "-", target: "-",
	})
	t.add(row{
		what: "backtest that goes on from a state: resident memory, at most", nodes: size, measured: fmt.Sprintf("%.0f MB", took.peak),
		reference: "VmHWM", ratio: "-", target: "< 1 GB", verdict: reached(took.peak < 1000),
	})
	return nil
}

func copyRules(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "rules"), 0o700); err != nil {
		return err
	}
	for _, name := range backtestRules {
		text, err := os.ReadFile(filepath.Join("rules", name+".yaml"))
		if err != nil {
			return err
		}
		text = bytes.Replace(text, []byte("\n  rules:\n"), []byte("\n  interval: "+backtestStep.String()+"\n  rules:\n"), 1)
		if err := os.WriteFile(filepath.Join(dir, "rules", name+".yaml"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func runBacktest(ctx context.Context, dir, program string, until time.Time, more ...string) (out spent, found *backtest.Report, err error) {
	run := exec.CommandContext(ctx, program, append(more, "--config", filepath.Join(dir, backtestFile),
		"--rules", filepath.Join(dir, "rules"), "--since", strconv.Itoa(int(until.Sub(backtestFrom).Minutes()))+"m",
		"--until", until.Format(time.RFC3339), "-o", "json")...)
	run.Stderr = os.Stderr
	began := time.Now()
	text, err := run.Output()
	if err != nil {
		return out, nil, err
	}
	clock := time.Since(began)
	found = &backtest.Report{}
	if err := json.Unmarshal(text, found); err != nil {
		return out, nil, err
	}
	used, _ := run.ProcessState.SysUsage().(*syscall.Rusage)
	return spent{run.ProcessState.UserTime() + run.ProcessState.SystemTime(), clock, float64(used.Maxrss) * 1024 / 1e6}, found, nil
}

// promtool evaluates the same rules over the same blocks. The result is the processor time of
// promtool and Prometheus together.
func runBackfill(ctx context.Context, server *lab.Process, address, dir string, files []string, until time.Time) (time.Duration, error) {
	built, err := programs.Build(ctx, os.Stdout, "promtool")
	if err != nil {
		return 0, err
	}
	own, err := os.MkdirTemp(dir, "backfill-")
	if err != nil {
		return 0, err
	}
	before, err := cpuOf(server.PID())
	if err != nil {
		return 0, err
	}
	run := exec.CommandContext(ctx, built["promtool"], slices.Concat([]string{
		"tsdb", "create-blocks-from", "rules", "--url=" + address, "--eval-interval=" + backtestStep.String(), "--output-dir=" + filepath.Join(own, "out"),
		"--start=" + backtestSamples.Format(time.RFC3339), "--end=" + until.Format(time.RFC3339),
	}, files)...)
	if text, err := run.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("promtool: %w: %s", err, text)
	}
	after, err := cpuOf(server.PID())
	if err != nil {
		return 0, err
	}
	return after - before + run.ProcessState.UserTime() + run.ProcessState.SystemTime(), nil
}
