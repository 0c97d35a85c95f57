package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/kube"
)

const (
	notifyEvery = 10 * time.Second
	endedFires  = 10 * time.Minute
)

// notifying posts an alert to Alertmanager for each repair that has ended. It runs on the leader.
func (j *joined) notifying() []manager.Runnable {
	if !j.cfg.Notify.Alertmanager {
		return nil
	}
	n := kube.Notifier{
		Client: j.clients, Reported: types.NamespacedName{Namespace: j.cfg.Ledger.Namespace, Name: j.cfg.Ledger.Name + "-reported"},
		Nodes: j.fleet.Nodes, Clock: clock.RealClock{},
		Post: func(ctx context.Context, ends []kube.Ended) error {
			return j.alerts.Post(ctx, j.endedAlerts(ends, time.Now()))
		},
	}
	return []manager.Runnable{j.again(notifyEvery, j.charge.While(n.Notify), "Drydock could not report the end of repairs to Alertmanager; trying again")}
}

// endedAlerts uses labels that depend only on the repair. So Alertmanager has only one alert if the
// leader posts the same end twice.
func (p *program) endedAlerts(ends []kube.Ended, now time.Time) (out []alertmanager.NewAlert) {
	for _, e := range ends {
		labels := map[string]string{"severity": "info"}
		maps.Copy(labels, p.cfg.Notify.Labels)
		if c := p.cfg.Core; c.ClusterLabel != "" {
			labels[c.ClusterLabel] = c.ClusterValue
		}
		maps.Copy(labels, map[string]string{
			model.AlertNameLabel: remediations.EndedAlert, "remediation": "none",
			"node": e.Node, "policy": e.Policy, "outcome": string(e.Outcome), "repair": e.ID,
		})
		steps, took := strings.Join(e.Steps.Texts(), ", "), text.Duration(e.Took().Round(time.Second))
		out = append(out, alertmanager.NewAlert{Labels: labels, StartsAt: e.Ended, EndsAt: now.Add(endedFires), Annotations: map[string]string{
			"summary":     fmt.Sprintf("Repair %s of node %s ended: %s", e.ID, e.Node, e.Outcome),
			"description": fmt.Sprintf("Policy %s ran these steps in %[3]s: %[2]s. For more: kubectl drydock history %[4]s", e.Policy, steps, took, e.Node),
			"steps":       steps, "duration": took,
		}})
	}
	return out
}
