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

// keepingEvery is how often the leader checks which of its reserved nodes to release.
const keepingEvery = 5 * time.Second

// leases are the Leases that Medik8s and Drydock use to agree who repairs a node.
func (p *program) leases() medik8s.Leases { return medik8s.Leases{Client: p.clients, Now: time.Now} }

// newReservers returns the systems that share nodes with Drydock: both agree who repairs a node.
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

// keeping makes the leader keep its reservations, and release those that have ended. A Drydock that
// only observes reserves nothing.
func (j *joined) keeping() (all []manager.Runnable, err error) {
	if !j.cfg.Enforces() {
		return nil, nil
	}
	if j.cfg.Core.Leases {
		k := medik8s.Keeper{Leases: j.leases(), Registry: j.cfg.Core.Registry}
		all = append(all, j.again(keepingEvery, j.charge.While(k.Keep), "Leases in "+medik8s.Namespace+" are not renewed or not given back"))
	}
	client, _, err := j.newClusterAPI()
	if client != nil {
		s := clusterapi.Share{Client: client, Registry: j.cfg.Core.Registry}
		all = append(all, j.again(keepingEvery, j.charge.While(s.GiveBack), "Machines still carry annotations of ended repairs"))
	}
	return all, err
}

// newConditions makes the part that sets Drydock's conditions on Nodes; nil: not configured. A
// Drydock that only observes sets none.
func (j *joined) newConditions() *kube.Conditions {
	if !j.cfg.Core.Conditions || !j.cfg.Enforces() {
		return nil
	}
	return &kube.Conditions{
		Client: j.clients, Registry: j.cfg.Core.Registry, Nodes: j.fleet.Nodes, Annotations: j.fleet.Keep, Now: time.Now, Log: j.log.WithName("conditions"),
	}
}

// keepingConditions makes the leader set and remove the conditions that failed earlier.
func (j *joined) keepingConditions() []manager.Runnable {
	if j.conditions == nil {
		return nil
	}
	return []manager.Runnable{j.again(keepingEvery, j.charge.While(j.conditions.Keep), "conditions of Nodes do not say what Drydock does")}
}

// again makes the leader repeat do. It tries again after an error; failing says what the error
// means.
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
