package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// The writes of one sample should seldom disturb the next.
const pauseBetween = 250 * time.Millisecond

// Alerts are posted one at a time, until the call that reboots the node. Before the first repair
// after a quiet time, Drydock must read the leases again. Before repairs that follow within
// seconds, it need not.
func (y *yard) measureLatency() error {
	var first, later, bare []time.Duration
	next := y.fleet.size - 1 // not the nodes with heartbeats: those are every tenth from 0 on
	sample := func() (time.Duration, error) {
		for next%heartbeatShare == 0 {
			next--
		}
		node := nodeName(next)
		next--
		return y.postUntilCall(node)
	}
	samples := min(100, y.fleet.size/10-y.rounds)
	y.profileWhile("latency", 30)
	for range y.rounds {
		y.sleep(11 * time.Second) // longer than Drydock uses one count of the leases
		each, _, err := y.fleet.everywhere(y.ctx, min(40, y.fleet.size), 1, y.touch)
		if err != nil {
			return err
		}
		bare = append(bare, each...)
		d, err := sample()
		if err != nil {
			return err
		}
		first = append(first, d)
		for range samples / y.rounds {
			y.pause(pauseBetween)
			if d, err = sample(); err != nil {
				return err
			}
			later = append(later, d)
		}
	}
	floor := float64(median(bare))
	reference := "bare PATCH, one worker: " + ms(median(bare))
	m, p99 := float64(median(first))/floor, float64(quantile(first, 0.99))/floor
	y.table.add(row{
		what: "POST of an alert → provider's call, the first after a quiet while", nodes: y.fleet.size,
		measured: fmt.Sprintf("%s, slowest of %d %s", ms(median(first)), len(first), ms(quantile(first, 0.99))), reference: reference,
		ratio: fmt.Sprintf("%.1f, slowest %.1f", m, p99), target: "≤ 6, p99 ≤ 15", verdict: reached(m <= 6 && p99 <= 15),
	})
	m, p99 = float64(median(later))/floor, float64(quantile(later, 0.99))/floor
	y.table.add(row{
		what: "… those that follow it", nodes: y.fleet.size,
		measured:  fmt.Sprintf("%s, p99 of %d %s; the provider is first asked after %s", ms(median(later)), len(later), ms(quantile(later, 0.99)), ms(median(y.asked))),
		reference: reference,
		ratio:     fmt.Sprintf("%.1f, p99 %.1f", m, p99), target: "≤ 6, p99 ≤ 20", verdict: reached(m <= 6 && p99 <= 20),
	})
	return y.awaitNoRepairs()
}

// This change does not concern Drydock.
func (y *yard) touch(ctx context.Context, node string) error {
	return y.fleet.patch(ctx, node, "bench.example.com/touched", time.Now().Format(time.RFC3339Nano))
}

// At the end the alert ends, so that the repair ends, too.
func (y *yard) postUntilCall(node string) (time.Duration, error) {
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.ctx, node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	instance := strings.TrimPrefix(n.Spec.ProviderID, "civo://")
	alert, body := alertOf(node), payload(node)
	if err := y.post([]map[string]any{alert}, time.Now().Add(time.Hour)); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := send(y.ctx, http.MethodPost, y.drydock.ReceiverURL, y.token, body); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(y.ctx, 20*time.Second)
	defer cancel()
	call, err := y.civo.AwaitCall(ctx, func(c civosim.Call) bool { return c.Op == civosim.HardReboots && strings.Contains(c.Path, instance) })
	if err != nil {
		return 0, fmt.Errorf("%s was not rebooted: %w", node, err)
	}
	y.asked = append(y.asked, y.firstAsked(began).Sub(began))
	return call.At.Sub(began), y.post([]map[string]any{alert}, time.Now())
}

// firstAsked returns the time of the provider's first request after the given time. Drydock looks
// the machine up before it writes the intent.
func (y *yard) firstAsked(after time.Time) time.Time {
	for _, c := range y.civo.Calls() {
		if c.At.After(after) {
			return c.At
		}
	}
	return after
}

func (y *yard) awaitNoRepairs() error {
	return y.until(3*time.Minute, "all repairs to end", func() (bool, error) {
		m, err := y.metrics()
		for k, v := range m {
			if strings.HasPrefix(k, "drydock_repairs_in_progress{") && v > 0 {
				return false, err
			}
		}
		return err == nil, err
	})
}

// measureRepair counts the API calls of whole repairs: from Alertmanager's own post of the firing
// alert to its own post of the resolved alert and the end of the repair.
func (y *yard) measureRepair() error {
	if err := y.deliver(true); err != nil {
		return err
	}
	var writes, reads []int
	kinds := map[string]int{}
	for i := range y.rounds {
		y.sleep(time.Second)
		node, mark := nodeName(i*heartbeatShare+1), y.audit.mark()
		alert := alertOf(node)
		if err := y.post([]map[string]any{alert}, time.Now().Add(time.Hour)); err != nil {
			return err
		}
		if err := y.until(20*time.Second, node+" to be under repair", func() (bool, error) {
			n, err := y.lab.Client().CoreV1().Nodes().Get(y.ctx, node, metav1.GetOptions{ResourceVersion: "0"})
			return err == nil && n.Labels[remediations.PhaseLabel] == string(remediations.PhaseVerifying), err
		}); err != nil {
			return err
		}
		if err := y.post([]map[string]any{alert}, time.Now()); err != nil {
			return err
		}
		if err := y.until(time.Minute, "the repair of "+node+" to end", func() (bool, error) {
			n, err := y.lab.Client().CoreV1().Nodes().Get(y.ctx, node, metav1.GetOptions{ResourceVersion: "0"})
			return err == nil && n.Labels[remediations.PhaseLabel] == "" && len(remediations.AlertsOn(n.Annotations)) == 0, err
		}); err != nil {
			return err
		}
		y.pause(time.Second) // the slot is freed only after the end is written
		calls, _, err := y.audit.since(mark)
		if err != nil {
			return err
		}
		w, r := 0, 0
		for _, c := range calls {
			if c.apart() {
				continue
			}
			if c.kind() == "get leases" && c.ObjectRef.Name != node {
				kinds["get leases of the sample"]++ // as the LIST: one look is good for all repairs of the next ten seconds
				continue
			}
			kinds[c.kind()]++
			if c.write() {
				w++
			} else {
				r++
			}
		}
		writes, reads = append(writes, w), append(reads, r)
	}
	w, r := median(writes), median(reads)
	y.table.add(row{
		what: "API calls of one whole repair, resolved alert included", nodes: y.fleet.size, measured: fmt.Sprintf("%d writes, %d reads", w, r),
		reference: fmt.Sprintf("in %d repairs: %s", y.rounds, counted(kinds)), ratio: "-", target: "≤ 6 writes, ≤ 4 reads", verdict: reached(w <= 6 && r <= 4),
	})
	return y.deliver(false)
}
