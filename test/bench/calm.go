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

// calm lets all alerts end, and returns when Alertmanager has said so to Drydock and the Nodes are
// as before: only then is each alert of the next storm news to both. Alertmanager does not post
// again what it believes to be known, and Drydock does not write what is there.
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
	y.pause(16 * time.Second) // Drydock has it from its own poll, too, and brings nothing back
	return y.cleared()
}

// cleared returns when no Node has anything of Drydock's any more.
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
		// Drydock clears away one node after the other. With its rival the bench is through in a
		// fifth of the time.
		_, _, err = y.fleet.everywhere(y.ctx, y.fleet.size, workersAtOnce, func(ctx context.Context, node string) error {
			if left[node] == nil {
				return nil
			}
			_, err := y.fleet.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, left[node], metav1.PatchOptions{FieldManager: "bench"})
			return err
		})
		y.pause(2 * time.Second) // the cache has caught up
		if mayPass(err) {
			err = nil // what is left is taken away in the next round
		}
		return false, err
	})
}

// posted waits until Alertmanager has no more to post.
func (y *yard) posted() error {
	return y.until(5*time.Minute, "Alertmanager to have made all of its posts", func() (bool, error) {
		before, err := y.notified()
		if err != nil {
			return false, err
		}
		y.pause(3 * time.Second) // a group is looked at once a second, and posts that failed come again within that
		after, err := y.notified()
		return before == after, err
	})
}

// withoutTrace is the patch that takes all of Drydock's off a node; nil: there is nothing.
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
		panic("encoding a patch: " + err.Error()) // plain data
	}
	return patch
}

// notified is how many posts Alertmanager has made.
func (y *yard) notified() (float64, error) {
	m, err := scrape(y.ctx, y.amURL+"/metrics")
	return m[`alertmanager_notification_requests_total{integration="webhook"}`], err
}
