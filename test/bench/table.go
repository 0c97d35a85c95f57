package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/lab/programs"
)

type row struct {
	what  string
	nodes int
	// measured and reference are texts for people. ratio is the number that the target is about.
	measured, reference, ratio, target string
	// yes or no, or "" if the figure has no target.
	verdict string
}

type table struct{ rows []row }

func (t *table) add(r row) {
	t.rows = append(t.rows, r)
	fmt.Printf("         %s: %s; %s: %s (%s) %s\n", r.what, r.measured, r.reference, r.ratio, r.target, r.verdict)
}

func reached(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}

// String returns the table in the format of test/bench/RESULTS.md.
func (t *table) String(o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s: %s.\n", time.Now().UTC().Format(time.DateOnly), machine())
	fmt.Fprintf(&b, "Versions: %s.\n", versions())
	fmt.Fprintf(&b, "Medians of %d unless said otherwise.", o.rounds)
	if o.quick {
		b.WriteString(" A quick run: not to be quoted.")
	}
	b.WriteString("\n\n| what | nodes | measured | its reference, in the same run | ratio | target | reached |\n|---|---|---|---|---|---|---|\n")
	// The rows of one figure stand together for all sizes of the fleet, so that its growth is
	// visible.
	var order []string
	for _, r := range t.rows {
		if !slices.Contains(order, r.what) {
			order = append(order, r.what)
		}
	}
	for _, what := range order {
		for _, r := range t.rows {
			if r.what == what {
				fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s |\n", r.what, r.nodes, r.measured, r.reference, r.ratio, r.target, r.verdict)
			}
		}
	}
	return b.String()
}

func machine() string {
	model, memory := "unknown processor", ""
	for _, line := range lines("/proc/cpuinfo") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	for _, line := range lines("/proc/meminfo") {
		var kib int
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kib); err == nil {
			memory = fmt.Sprintf(", %d GiB", (kib+1<<19)>>20)
		}
	}
	kernel := ""
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = ", Linux " + strings.TrimSpace(string(data))
	}
	return fmt.Sprintf("%d cores (%s)%s%s, shared by load, servers and Drydock", runtime.NumCPU(), model, memory, kernel)
}

func versions() string {
	out := []string{runtime.Version()}
	for _, p := range []string{"kube-apiserver", "etcd", "kwok", "alertmanager"} {
		if v, err := programs.Version(p); err == nil {
			out = append(out, p+" "+v)
		}
	}
	if commit, err := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output(); err == nil { //nolint:noctx // at once
		out = append(out, "drydock "+strings.TrimSpace(string(commit)))
	}
	return strings.Join(out, ", ")
}

func lines(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// quantile returns the smallest value that is not below a share q of the values.
func quantile[T int | int64 | float64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median[T int | int64 | float64 | time.Duration](values []T) T { return quantile(values, 0.5) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func times(a, b float64) string { return fmt.Sprintf("%.2f", a/b) }
