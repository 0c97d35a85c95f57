package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// One thing that must happen. It is checked at every change of the Node, or regularly. The result
// is the text to print, or "" if it has not happened yet.
type sighting struct {
	what string
	node func(*corev1.Node) string
	ask  func(context.Context) string
}

func (s sighting) seen(ctx context.Context, n *corev1.Node) string {
	switch {
	case s.ask != nil:
		return s.ask(ctx)
	case n != nil:
		return s.node(n)
	}
	return ""
}

// watch prints a line for each thing that happens, with the time since the break. answer is the
// name of the provider's answer.
func watch(ctx context.Context, l *lab.Lab, reboots func() []string, answer string, within time.Duration) error {
	node, err := l.Client().CoreV1().Nodes().Get(ctx, broken, metav1.GetOptions{})
	if err != nil {
		return err
	}
	bootID := node.Status.NodeInfo.BootID
	t0 := time.Now()
	l.Break(broken)
	line(0, "broken", broken+"'s kubelet is cut off: its lease is no longer renewed")

	sightings := list(l, reboots, answer, bootID)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	changes, err := l.Client().CoreV1().Nodes().Watch(ctx, metav1.SingleObject(node.ObjectMeta))
	if err != nil {
		return fmt.Errorf("watching the node: %w", err)
	}
	defer changes.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for len(sightings) > 0 {
		var n *corev1.Node
		select {
		case e := <-changes.ResultChan():
			n, _ = e.Object.(*corev1.Node)
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%q did not come within %s", sightings[0].what, within)
		}
		sightings = slices.DeleteFunc(sightings, func(s sighting) bool {
			text := s.seen(ctx, n)
			if text != "" {
				line(time.Since(t0), s.what, text)
			}
			return text != ""
		})
	}
	return nil
}

func line(since time.Duration, what, text string) {
	fmt.Printf("%6.1f s  %-15s %s\n", since.Seconds(), what, text)
}

func list(l *lab.Lab, reboots func() []string, answer, bootID string) []sighting {
	record := func(phase remediations.Phase, say func(*remediations.Record) string) func(*corev1.Node) string {
		return func(n *corev1.Node) string {
			r := remediations.ReadJournal(n).Record
			if r == nil || r.Phase != phase {
				return ""
			}
			return say(r)
		}
	}
	return []sighting{
		{what: "heartbeat lost", ask: func(ctx context.Context) string {
			lease, err := l.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, broken, metav1.GetOptions{ResourceVersion: "0"})
			if err != nil || lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) < time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second {
				return ""
			}
			return fmt.Sprintf("the lease ran out: not renewed for %d s", *lease.Spec.LeaseDurationSeconds)
		}},
		{what: "Unknown", node: func(n *corev1.Node) string {
			if c := remediations.ReadyCondition(n); c == nil || c.Status != corev1.ConditionUnknown {
				return ""
			}
			return "the node controller set Ready=Unknown"
		}},
		{what: "alert firing", ask: func(ctx context.Context) string { return firing(ctx, l.PrometheusURL()) }},
		{what: "received", node: func(n *corev1.Node) string {
			for _, a := range remediations.AlertsOn(n.Annotations) {
				return "Drydock wrote the alert on the Node: " + a.Key()
			}
			return ""
		}},
		{what: "intent", node: record(remediations.PhaseActing, func(r *remediations.Record) string {
			return fmt.Sprintf("repair %s: intent %s is on the Node, the slot in the ledger", r.ID, r.Intent.ID)
		})},
		{what: "reboot call", ask: func(context.Context) string {
			if done := reboots(); len(done) > 0 {
				return done[0]
			}
			return ""
		}},
		{what: "verifying", node: record(remediations.PhaseVerifying, func(r *remediations.Record) string {
			return fmt.Sprintf("%s: %s; waiting for proof until %s", answer, r.Intent.Outcome, r.Deadline.Format(time.TimeOnly))
		})},
		{what: "back", node: func(n *corev1.Node) string {
			if c := remediations.ReadyCondition(n); n.Status.NodeInfo.BootID == bootID || c == nil || c.Status != corev1.ConditionTrue {
				return ""
			}
			return "Ready again, boot ID " + n.Status.NodeInfo.BootID
		}},
		{what: "verified", node: func(n *corev1.Node) string {
			for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
				return e.Why
			}
			return ""
		}},
		{what: "Recovered", node: func(n *corev1.Node) string {
			for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
				if e.Outcome == remediations.OutcomeRecovered && n.Labels[remediations.PhaseLabel] == "" {
					return fmt.Sprintf("repair %s ended after %s (%s); the slot is free", e.ID, e.Ended.Sub(e.Began), e.Steps)
				}
			}
			return ""
		}},
	}
}

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
