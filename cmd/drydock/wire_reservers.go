package main

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/providers/clusterapi"
	"drydock.dev/drydock/remediations/providers/medik8s"
)

const keepingEvery = 5 * time.Second

// leases are Medik8s' Leases. The holder of such a Lease repairs the node: either Drydock or
// Medik8s.
func (p *program) leases() medik8s.Leases { return medik8s.Leases{Client: p.clients, Now: time.Now} }

// newReservers returns one Reserver for each system that shares nodes with Drydock.
func (p *program) newReservers() (all []engine.Reserver, err error) {
	if p.cfg.Core.Leases {
		all = append(all, p.leases())
	}
	client, _, err := p.newClusterAPI()
	if client != nil {
		all = append(all, clusterapi.Share{Client: client})
	}
	return all, err
}

// keeping renews Drydock's reservations of nodes and releases those of ended repairs, on the
// leader. If Drydock only observes, it reserves nothing, so there are no such parts.
func (j *joined) keeping() (all []manager.Runnable, err error) {
	if !j.cfg.Enforces() {
		return nil, nil
	}
	if j.cfg.Core.Leases {
		k := medik8s.Keeper{Leases: j.leases(), Registry: j.cfg.Core.Registry}
		all = append(all, j.again(keepingEvery, j.charge.While(k.Keep), "Drydock could not renew or release its Leases in "+medik8s.Namespace+"; trying again"))
	}
	client, _, err := j.newClusterAPI()
	if client != nil {
		s := clusterapi.Share{Client: client, Registry: j.cfg.Core.Registry}
		all = append(all, j.again(keepingEvery, j.charge.While(s.GiveBack), "Drydock could not remove the annotations of ended repairs from Machines; trying again"))
	}
	return all, err
}

// newConditions returns nil if the conditions are not configured or Drydock only observes.
func (j *joined) newConditions() *kube.Conditions {
	if !j.cfg.Core.Conditions || !j.cfg.Enforces() {
		return nil
	}
	return &kube.Conditions{
		Client: j.clients, Registry: j.cfg.Core.Registry, Nodes: j.fleet.Nodes, Annotations: j.fleet.Keep, Now: time.Now, Log: j.log.WithName("conditions"),
	}
}

func (j *joined) keepingConditions() []manager.Runnable {
	if j.conditions == nil {
		return nil
	}
	return []manager.Runnable{j.again(keepingEvery, j.charge.While(j.conditions.Keep), "Drydock could not update its conditions on Nodes; trying again")}
}

// again runs on the leader. After an error, it logs the text in failing and continues.
func (p *program) again(every time.Duration, do func(context.Context) error, failing string) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			if err := do(ctx); err != nil && ctx.Err() == nil {
				p.log.Error(err, failing)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
}
