package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations/kube"
)

func (j *joined) makeCharge() error {
	le := j.cfg.LeaderElection
	client, err := kubernetes.NewForConfig(apart(j.writes))
	if err != nil {
		return fmt.Errorf("making the client for the cluster's Lease: %w", err)
	}
	j.charge = &kube.Charge{
		Client: client, Lease: types.NamespacedName(le.Cluster), Identity: types.NamespacedName(le.Lease).String(), Good: le.RenewDeadline,
		Elected: j.manager.Elected(), Clock: clock.RealClock{}, Log: j.log.WithName("charge"),
		Changed: func() { j.engine.Notice() },
	}
	return nil
}
