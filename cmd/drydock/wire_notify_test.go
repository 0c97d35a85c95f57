package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

// TestTheAlertOfAnEndIsTheSameWhenItIsReportedAgain: it has the labels that the user chose, and
// ends ten minutes after the report.
func TestTheAlertOfAnEndIsTheSameWhenItIsReportedAgain(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	p := &program{cfg: &config.Config{
		Notify: config.Notify{Alertmanager: true, Labels: map[string]string{"team": "platform", "severity": "warning"}},
		Core:   &remediations.Config{ClusterLabel: "cluster", ClusterValue: "prod-1"},
	}}
	end := kube.Ended{Node: "n1", Entry: remediations.Entry{
		ID: "n7q4k2", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Began: noon.Add(-4 * time.Minute), Ended: noon,
		Steps: remediations.Attempts{{Name: "reboot", Number: 1}},
	}}
	first := p.endedAlerts([]kube.Ended{end}, noon)[0]
	require.Equal(t, map[string]string{
		"alertname": "DrydockRepairEnded", "remediation": "none", "node": "n1", "policy": "node-not-ready", "outcome": "Recovered", "repair": "n7q4k2",
		"cluster": "prod-1", "team": "platform", "severity": "warning",
	}, first.Labels)
	require.Equal(t, "reboot:1", first.Annotations["steps"])
	require.Equal(t, "4m", first.Annotations["duration"])
	require.Equal(t, noon.Add(10*time.Minute), first.EndsAt)

	again := p.endedAlerts([]kube.Ended{end}, noon.Add(time.Hour))[0]
	require.Equal(t, first.Labels, again.Labels)
	require.Equal(t, first.StartsAt, again.StartsAt)
	end.ID = "aaaaaa" // the control
	require.NotEqual(t, first.Labels, p.endedAlerts([]kube.Ended{end}, noon)[0].Labels)
}
