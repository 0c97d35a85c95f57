package readme

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
)

const trial = "docs/first-week.md"

// tries does what docs/first-week.md says, day by day. Its commands run as printed, except for the
// name of a node, the address of Prometheus, and how far back data is replayed: the lab's data is
// minutes old.
func (s *terminal) tries(t *testing.T, receiver string, civo *lab.Civo) {
	const node = "node-5"
	as := strings.NewReplacer("NODE", node, "http://localhost:9090", s.lab.PrometheusURL(), "--since 30d", "--since 1h", "~/.kube/config", s.lab.AdminKubeconfig())
	typed := func(heading string, n int) (out []string) {
		for _, line := range commands(t, trial, heading) {
			out = append(out, as.Replace(line))
		}
		require.Len(t, out, n, heading)
		return out
	}
	require.NoError(t, programs.Compile(t.Context(), filepath.Join(s.dir, "drydock-backtest"), "./cmd/drydock-backtest"))

	day := typed("Day 1: install, observe, see that alerts arrive", 7)
	status := s.types(day[0])
	for _, right := range []string{`(?m)^Mode: +observe\b`, `(?m)^SelfTest: +ok`, `(?m)^Blind: +no$`, `(?m)^Breaker: +cluster closed`} {
		require.Regexp(t, right, status, "the page's table")
	}
	s.testPodSucceeds(t, day[1])
	s.types(day[2])
	require.Contains(t, s.types(day[3]), "config.yaml: ok\n")
	s.types(day[4])
	require.Contains(t, s.reading("backtest.html"), "<title>Drydock backtest")
	// The observed repair of node-3 would hold the request at the limit. With two of six nodes
	// unhealthy, the breaker would hold the next repair.
	require.NoError(t, s.lab.SetCondition(t.Context(), "node-3", "KernelDeadlock", corev1.ConditionFalse, "KernelHasNoDeadlock"))
	await(t, "node-3 to be well", func() bool { return !strings.Contains(s.types("kubectl drydock status"), "node-3") })
	s.types(day[5])
	await(t, "the refusal", func() bool { return regexp.MustCompile(node + `.*Observing`).MatchString(s.types(day[6])) })

	day = typed("Days 2 and 3: read what would have been done", 2)
	require.Contains(t, s.types(day[0]), "node-kernel-deadlock", "which observed node-3")
	s.types(day[1])
	require.Contains(t, s.reading("report.html"), "node-kernel-deadlock")

	heading := "Day 5: one policy enforces, with approval"
	day = typed(heading, 3)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "enforce.yaml"), []byte(blocks(section(t, trial, heading), "yaml")[0]), 0o600))
	require.Contains(t, s.types(day[0]), "Mode: enforce")
	require.NoError(t, s.drydock.Stop(t.Context()))
	s.kubeletStarts(receiver, civo)
	require.NoError(t, s.lab.SetCondition(t.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	await(t, "a repair that waits", func() bool { return strings.Contains(s.types("kubectl drydock status"), "AwaitingApproval") })
	code, why := s.exits(day[1] + " --config drydock.yaml") // with the lab's own configuration, because the nodes of a lab are too young for the installed one
	require.Equal(t, 3, code, why)
	require.Contains(t, why, "AwaitingApproval holds it")
	require.Contains(t, why, "To change that: "+day[2])
	require.Empty(t, civo.Done(civosim.Any), "it waits")
	s.types(day[2])
	await(t, "the end of the repair", func() bool {
		all := remediations.DecodeHistory(s.node(node).Annotations[remediations.HistoryKey])
		return len(all) > 0 && all[0].Outcome == remediations.OutcomeRecovered
	})
	require.Len(t, civo.Done(civosim.Any), 1, "the machine was rebooted once")
	require.Contains(t, s.types("kubectl drydock report --since 1d"), "Recovered 1")

	for _, line := range inline(t) {
		code, said := s.exits(as.Replace(line))
		require.NotContains(t, []int{1, 2}, code, "%s\n%s", line, said)
	}
	var c struct{ Policies []struct{ Approval bool } }
	var configuration corev1.ConfigMap
	s.reads("configmap drydock", &configuration)
	require.NoError(t, yaml.Unmarshal([]byte(configuration.Data["drydock.yaml"]), &c))
	require.True(t, c.Policies[0].Approval, "the control: it is what the page writes that enforced")
}

// inline returns the commands in the page's sentences and tables that only read.
func inline(t *testing.T) (out []string) {
	t.Helper()
	for _, found := range regexp.MustCompile("`(kubectl drydock (?:report|status|history|why)[^`]*)`").FindAllStringSubmatch(page(t, trial), -1) {
		if !strings.HasSuffix(found[1], " -w") { // with -w it runs until a person ends it
			out = append(out, found[1])
		}
	}
	require.Greater(t, len(out), 6)
	return out
}

// exits runs a command, and returns its exit code and its output.
func (s *terminal) exits(line string) (code int, said string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), lab.Patience)
	defer cancel()
	out, err := s.command(ctx, line).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(s.t, err, line)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return code, string(out)
}

func (s *terminal) reading(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	require.NoError(s.t, err)
	return string(text)
}

// testPodSucceeds runs `helm test` and plays the kubelet for the pod. The tests in test/connect run
// what the pod runs.
func (s *terminal) testPodSucceeds(t *testing.T, line string) {
	t.Helper()
	pods := s.lab.Client().CoreV1().Pods("drydock")
	ended := make(chan string, 1)
	go func() {
		code, said := s.exits(line)
		if code == 0 {
			said = ""
		}
		ended <- said
	}()
	await(t, "the test's pod", func() bool {
		select {
		case said := <-ended:
			require.Empty(t, said)
			return true
		default:
		}
		all, err := pods.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, p := range all.Items {
			if p.Annotations["helm.sh/hook"] == "test" && p.Status.Phase != corev1.PodSucceeded {
				p.Status.Phase = corev1.PodSucceeded
				_, _ = pods.UpdateStatus(t.Context(), &p, metav1.UpdateOptions{}) // if it fails, the next round tries again
			}
		}
		return false
	})
}
