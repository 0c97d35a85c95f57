package main

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/providers/clusterapi"
	clusterapisettings "drydock.dev/drydock/remediations/providers/clusterapi/settings"
)

// unread has one sentence for each kind of system whose objects could not be read.
func repairersOf(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface) (all []coverage.Repairer, unread []string) {
	for _, l := range repairers {
		found, err := l.find(ctx, client, objects)
		if err != nil {
			unread = append(unread, fmt.Sprintf("it is unknown whether %s repair the same nodes: %v", l.what, err))
		}
		all = append(all, found...)
	}
	return append(all, coverage.Managed()...), unread
}

// repairersElsewhere reads the MachineHealthChecks of an external management cluster. kubeconfig
// replaces the configured file, which exists only in Drydock's pod.
func repairersElsewhere(ctx context.Context, cfg *config.Config, kubeconfig string) (all []coverage.Repairer, unread []string) {
	c, ok := config.Of[*clusterapisettings.ClusterAPI](cfg)
	if !ok || c.Kubeconfig == "" {
		return nil, nil
	}
	all, err := clusterapi.MachineHealthChecksElsewhere(ctx, cmp.Or(kubeconfig, c.Kubeconfig), c.Cluster, readNodesWithin)
	if err != nil {
		unread = []string{fmt.Sprintf("it is unknown whether MachineHealthChecks of the management cluster repair the same nodes: %v; give that cluster's kubeconfig with --management-kubeconfig", err)}
	}
	return all, unread
}
