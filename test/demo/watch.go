package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
)

// sighting is one thing that must happen, and how it is seen. It returns what to print, or nothing while it has not
// happened yet.
type sighting struct {
	what string
	seen func(context.Context) string
}

// watch breaks the node and prints a line for each thing that happens, with the time since the break.
func watch(ctx context.Context, l *lab.Lab, civo *lab.Civo) error {
	node, err := l.Client().CoreV1().Nodes().Get(ctx, broken, metav1.GetOptions{})
	if err != nil {
		return err
	}
	bootID := node.Status.NodeInfo.BootID
	t0 := time.Now()
	l.Break(broken)
	line(0, "broken", broken+"'s kubelet is cut off: its lease is no longer renewed")

	sightings := list(l, civo, bootID)
	var mu sync.Mutex
	missing := make(map[string]bool, len(sightings))
	for _, s := range sightings {
		missing[s.what] = true
	}
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range sightings {
		wg.Go(func() {
			ticker := time.NewTicker(20 * time.Millisecond)
			defer ticker.Stop()
			for {
				if text := s.seen(ctx); text != "" {
					mu.Lock()
					defer mu.Unlock()
					delete(missing, s.what)
					line(time.Since(t0), s.what, text)
					return
				}
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
	for _, s := range sightings {
		if missing[s.what] {
			return fmt.Errorf("%q did not come within %s", s.what, stepWithin)
		}
	}
	return nil
}

func line(since time.Duration, what, text string) {
	fmt.Printf("%6.1f s  %-15s %s\n", since.Seconds(), what, text)
}

func list(l *lab.Lab, civo *lab.Civo, bootID string) []sighting {
	onNode := func(see func(*corev1.Node) string) func(context.Context) string {
		return func(ctx context.Context) string {
			n, err := l.Client().CoreV1().Nodes().Get(ctx, broken, metav1.GetOptions{ResourceVersion: "0"})
			if err != nil {
				return ""
			}
			return see(n)
		}
	}
	record := func(phase remediations.Phase, say func(*remediations.Record) string) func(context.Context) string {
		return onNode(func(n *corev1.Node) string {
			r := remediations.ReadJournal(n).Record
			if r == nil || r.Phase != phase {
				return ""
			}
			return say(r)
		})
	}
	return []sighting{
		{"heartbeat lost", func(ctx context.Context) string {
			lease, err := l.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, broken, metav1.GetOptions{ResourceVersion: "0"})
			if err != nil || lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) < time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second {
				return ""
			}
			return fmt.Sprintf("the lease ran out: not renewed for %d s", *lease.Spec.LeaseDurationSeconds)
		}},
		{"Unknown", onNode(func(n *corev1.Node) string {
			if c := remediations.ReadyCondition(n); c == nil || c.Status != corev1.ConditionUnknown {
				return ""
			}
			return "kube-controller-manager set Ready=Unknown"
		})},
		{"alert firing", func(ctx context.Context) string { return firing(ctx, l.PrometheusURL()) }},
		{"received", onNode(func(n *corev1.Node) string {
			for _, a := range remediations.AlertsOn(n.Annotations) {
				return "Drydock wrote the alert on the Node: " + a.Key()
			}
			return ""
		})},
		{"intent", record(remediations.Acting, func(r *remediations.Record) string {
			return fmt.Sprintf("repair %s: intent %s is on the Node, the slot in the ledger", r.ID, r.Intent.ID)
		})},
		{"reboot call", func(ctx context.Context) string {
			c, err := civo.AwaitCall(ctx, func(c civosim.Call) bool { return c.Op == civosim.HardReboots })
			if err != nil {
				return ""
			}
			return c.Method + " " + c.Path
		}},
		{"verifying", record(remediations.Verifying, func(r *remediations.Record) string {
			return fmt.Sprintf("Civo's answer: %s; waiting for proof until %s", r.Intent.Outcome, r.Deadline.Format(time.TimeOnly))
		})},
		{"back", onNode(func(n *corev1.Node) string {
			if c := remediations.ReadyCondition(n); n.Status.NodeInfo.BootID == bootID || c == nil || c.Status != corev1.ConditionTrue {
				return ""
			}
			return "Ready again, boot ID " + n.Status.NodeInfo.BootID
		})},
		{"verified", onNode(func(n *corev1.Node) string {
			for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
				return e.Why
			}
			return ""
		})},
		{"Recovered", onNode(func(n *corev1.Node) string {
			for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
				if e.Outcome == remediations.Recovered && n.Labels[remediations.PhaseLabel] == "" {
					return fmt.Sprintf("repair %s ended after %s (%s); the slot is free", e.ID, e.Ended.Sub(e.Began), strings.Join(e.Steps, ", "))
				}
			}
			return ""
		})},
	}
}

// firing asks Prometheus itself whether the alert fires.
func firing(ctx context.Context, prometheus string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, prometheus+"/api/v1/alerts", nil)
	if err != nil {
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string `json:"labels"`
				State  string            `json:"state"`
			} `json:"alerts"`
		} `json:"data"`
	}
	if json.NewDecoder(res.Body).Decode(&answer) != nil {
		return ""
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" && a.Labels["node"] == broken {
			return fmt.Sprintf("Prometheus: %s{node=%q, remediation=%q}", a.Labels["alertname"], broken, a.Labels["remediation"])
		}
	}
	return ""
}

// describe prints what kubectl shows of the node's story.
func describe(ctx context.Context, l *lab.Lab) error {
	kubectl, err := programs.Path("kubectl")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", l.AdminKubeconfig(), "describe", "node", broken)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("describing the node: %w", err)
	}
	fmt.Printf("\n$ kubectl describe node %s      (what concerns the repair)\n", broken)
	events := false
	for text := range strings.Lines(string(out)) {
		events = events || strings.HasPrefix(text, "Events:")
		if events || strings.HasPrefix(text, "Name:") || strings.Contains(text, "drydock.dev") || strings.HasPrefix(strings.TrimSpace(text), "Ready ") {
			fmt.Print(text)
		}
	}
	return nil
}
