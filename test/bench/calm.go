package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
)

// Alertmanager does not post again what it takes for known, and Drydock does not write an alert
// that is already on the Node. So before the next storm all alerts must have ended, Drydock must
// know that, and the Nodes must be as before.
func (y *yard) calm() error {
	if err := y.deliver(true); err != nil {
		return err
	}
	if err := y.post(y.allAlerts(), time.Now()); err != nil {
		return err
	}
	if err := y.posted(); err != nil {
		return err
	}
	y.pause(16 * time.Second) // Drydock's own poll must also show that the alerts have ended
	return y.cleared()
}

func (y *yard) cleared() error {
	return y.until(5*time.Minute, "the storm to be over", func() (bool, error) {
		nodes, err := y.lab.Client().CoreV1().Nodes().List(y.ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		left := map[string][]byte{}
		for _, n := range nodes.Items {
			if patch := withoutTrace(n.Annotations); patch != nil {
				left[n.Name] = patch
			}
		}
		if len(left) == 0 {
			return true, nil
		}
		// Drydock removes its keys from one node after the other. With help from the benchmark,
		// that takes a fifth of the time.
		_, _, err = y.fleet.everywhere(y.ctx, y.fleet.size, workersAtOnce, func(ctx context.Context, node string) error {
			if left[node] == nil {
				return nil
			}
			_, err := y.fleet.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, left[node], metav1.PatchOptions{FieldManager: "bench"})
			return err
		})
		y.pause(2 * time.Second) // the cache needs a moment to catch up
		if mayPass(err) {
			err = nil // the next round removes what is left
		}
		return false, err
	})
}

func (y *yard) posted() error {
	return y.until(5*time.Minute, "Alertmanager to have made all of its posts", func() (bool, error) {
		before, err := y.notified()
		if err != nil {
			return false, err
		}
		y.pause(3 * time.Second) // Alertmanager checks each group once a second, and repeats a failed post within that time
		after, err := y.notified()
		return before == after, err
	})
}

func withoutTrace(annotations map[string]string) []byte {
	off := map[string]any{}
	for k := range annotations {
		if strings.HasPrefix(k, remediations.AlertPrefix) || k == remediations.NodeRepairKey {
			off[k] = nil
		}
	}
	if len(off) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": off, "labels": map[string]any{remediations.PhaseLabel: nil}}})
	if err != nil {
		panic("encoding a patch: " + err.Error()) // cannot fail: the value is plain data
	}
	return patch
}

func (y *yard) notified() (float64, error) {
	m, err := scrape(y.ctx, y.amURL+"/metrics")
	return m[`alertmanager_notification_requests_total{integration="webhook"}`], err
}
