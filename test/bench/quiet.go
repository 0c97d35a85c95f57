package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// measureStart measures a restart of Drydock, and for comparison a plain LIST of the Nodes.
func (y *yard) measureStart() error {
	config := rest.CopyConfig(y.lab.AdminConfig())
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var starts, lists []time.Duration
	for range y.rounds {
		if err := y.stopDrydock(); err != nil {
			return err
		}
		began := time.Now()
		if _, err := client.CoreV1().Nodes().List(y.ctx, metav1.ListOptions{ResourceVersion: "0"}); err != nil {
			return err
		}
		lists = append(lists, time.Since(began))
		if err := y.withEnv(func() error {
			began = time.Now()
			err := y.drydock.Start(y.ctx)
			starts = append(starts, time.Since(began))
			return err
		}); err != nil {
			return err
		}
		if err := y.awaitLead(); err != nil {
			return err
		}
	}
	ratio := float64(median(starts)) / float64(median(lists))
	y.table.add(row{
		what: "start until ready", nodes: y.fleet.size, measured: ms(median(starts)), reference: "LIST of all Nodes, in protobuf, decoded: " + ms(median(lists)),
		ratio: fmt.Sprintf("%.1f", ratio), target: "≤ 3", verdict: reached(ratio <= 3),
	})
	return nil
}

// This long after a change of leader, Drydock still reads the ledger for writes of the earlier
// leader.
const leadYoung = 2 * time.Minute

func (y *yard) measureIdle() error {
	y.sleep(max(0, leadYoung-time.Since(y.led)) + 5*time.Second)
	y.profileWhile("idle", 55)
	calls, used, err := y.minute()
	if err != nil {
		return err
	}
	others := 0
	kinds := map[string]int{}
	for _, c := range calls {
		if c.Verb == "watch" {
			continue // a watch that ended and began again is still the same watch
		}
		kinds[c.kind()]++
		if !strings.HasSuffix(c.kind(), "(leader)") {
			others++
		}
	}
	y.table.add(row{
		what: "idle: API calls in a minute", nodes: y.fleet.size, measured: counted(kinds), reference: "the leader's own lease",
		ratio: fmt.Sprintf("%d others", others), target: "0 others", verdict: reached(others == 0),
	})
	y.addCPU("idle: CPU", used)
	resident, anonymous, _, err := memoryOf(y.drydock.PID())
	if err != nil {
		return err
	}
	y.table.add(row{what: "resident memory, idle", nodes: y.fleet.size, measured: fmt.Sprintf("%.0f MB, of which %.0f are anonymous", resident, anonymous), reference: "-", ratio: "-", target: "-"})
	return nil
}

// The processor time of Drydock, and for comparison that of a plain watcher of Nodes.
type usage struct {
	drydock, watcher, over time.Duration
	beats                  int64
}

func (y *yard) minute() (calls []call, u usage, err error) {
	pids := []int{y.drydock.PID(), y.watcher.PID()}
	var before, after [2]time.Duration
	for i, pid := range pids {
		if before[i], err = cpuOf(pid); err != nil {
			return nil, u, err
		}
	}
	mark, beats, began := y.audit.mark(), y.fleet.beats.Load(), time.Now()
	y.sleep(time.Minute)
	if err := y.ctx.Err(); err != nil {
		return nil, u, err // the context ended before the minute did
	}
	u.over, u.beats = time.Since(began), y.fleet.beats.Load()-beats
	for i, pid := range pids {
		if after[i], err = cpuOf(pid); err != nil {
			return nil, u, err
		}
	}
	u.drydock, u.watcher = after[0]-before[0], after[1]-before[1]
	calls, _, err = y.audit.since(mark)
	return calls, u, err
}

func (y *yard) addCPU(what string, u usage) {
	share := func(d time.Duration) float64 { return 100 * float64(d) / float64(u.over) }
	beyond := share(u.drydock) - share(u.watcher)
	y.table.add(row{
		what: what, nodes: y.fleet.size, measured: fmt.Sprintf("%.2f%% of a core", share(u.drydock)),
		reference: fmt.Sprintf("a bare cache of Nodes at the same %.0f status updates a second: %.2f%%", float64(u.beats)/u.over.Seconds(), share(u.watcher)),
		ratio:     fmt.Sprintf("%+.2f%%", beyond), target: "< 1% beyond", verdict: reached(beyond < 1),
	})
}

func counted(kinds map[string]int) string {
	if len(kinds) == 0 {
		return "none"
	}
	sorted := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		if kinds[a] != kinds[b] {
			return kinds[b] - kinds[a]
		}
		return strings.Compare(a, b)
	})
	var out []string
	for _, k := range sorted {
		out = append(out, fmt.Sprintf("%d %s", kinds[k], k))
	}
	return strings.Join(out, ", ")
}

// As in a large company, Alertmanager has many alerts that do not concern Drydock.
func (y *yard) measurePoll() error {
	const active = 5000
	alerts := make([]map[string]any, active)
	for i := range alerts {
		a := alertOf(nodeName(i % y.fleet.size))
		a["labels"].(map[string]string)["alertname"] = "ContainerRestarts" //nolint:forcetypeassert // alertOf makes it
		a["labels"].(map[string]string)["pod"] = fmt.Sprintf("pod-%d", i)  //nolint:forcetypeassert // alertOf makes it
		delete(a["labels"].(map[string]string), "remediation")             //nolint:forcetypeassert // alertOf makes it
		alerts[i] = a
	}
	if err := y.post(alerts, time.Now().Add(time.Hour)); err != nil {
		return err
	}
	y.sleep(16 * time.Second)
	y.profileWhile("poll", 55)
	_, used, err := y.minute()
	if err != nil {
		return err
	}
	y.addCPU("poll of 5,000 active alerts at 15 s: CPU", used)
	resident, _, peak, err := memoryOf(y.drydock.PID())
	if err != nil {
		return err
	}
	y.table.add(row{what: "poll of 5,000 active alerts: resident memory", nodes: y.fleet.size, measured: fmt.Sprintf("%.0f MB, at most %.0f MB so far", resident, peak), reference: "-", ratio: "-", target: "bounded"})
	return y.post(alerts, time.Now())
}

// Drydock's pod would have these environment variables.
func (y *yard) withEnv(start func() error) error {
	for k, v := range map[string]string{"GOMEMLIMIT": memoryLimit, "DRYDOCK_PPROF": y.pprof} {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
		defer func() { _ = os.Unsetenv(k) }()
	}
	if err := start(); err != nil {
		return err
	}
	y.stopped = false
	return nil
}
