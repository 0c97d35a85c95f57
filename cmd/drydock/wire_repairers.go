package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/providers/civo"
	"drydock.dev/drydock/remediations/providers/clusterapi"
	"drydock.dev/drydock/remediations/providers/karpenter"
	"drydock.dev/drydock/remediations/providers/medik8s"
)

// repairers find nothing if the system's API is not installed.
var repairers = []struct {
	what string
	find func(context.Context, kubernetes.Interface, dynamic.Interface) ([]coverage.Repairer, error)
}{
	{"NodeHealthChecks of Medik8s", func(ctx context.Context, _ kubernetes.Interface, objects dynamic.Interface) ([]coverage.Repairer, error) {
		return medik8s.NodeHealthChecks(ctx, objects)
	}},
	{"MachineHealthChecks of Cluster API", func(ctx context.Context, _ kubernetes.Interface, objects dynamic.Interface) ([]coverage.Repairer, error) {
		return clusterapi.MachineHealthChecks(ctx, objects, types.NamespacedName{})
	}},
	{"Deployments of Karpenter", func(ctx context.Context, client kubernetes.Interface, _ dynamic.Interface) ([]coverage.Repairer, error) {
		return karpenter.NodeRepairs(ctx, client)
	}},
	{"Deployments of Civo's node-agent", func(ctx context.Context, client kubernetes.Interface, _ dynamic.Interface) ([]coverage.Repairer, error) {
		return civo.NodeAgents(ctx, client)
	}},
}

const (
	otherRepairersEvery  = 10 * time.Minute
	otherRepairersWithin = 30 * time.Second
)

type others struct {
	mu sync.Mutex
	// byRepairer[i] has what repairers[i].find found.
	byRepairer [][]coverage.Repairer
}

func (o *others) found() []coverage.Repairer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Concat(o.byRepairer...)
}

// look finds nothing of a kind that Drydock has no right to list. After any other error, it keeps
// the last result for that kind.
func (o *others) look(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, otherRepairersWithin)
	defer cancel()
	var failed []error
	for i, l := range repairers {
		all, err := l.find(ctx, client, objects)
		switch {
		case apierrors.IsForbidden(err):
			all = nil
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", l.what, err))
			continue
		}
		o.mu.Lock()
		if o.byRepairer == nil {
			o.byRepairer = make([][]coverage.Repairer, len(repairers))
		}
		o.byRepairer[i] = all
		o.mu.Unlock()
	}
	return errors.Join(failed...)
}

func (p *program) lookingForRepairers() ([]manager.Runnable, error) {
	objects, err := dynamic.NewForConfig(p.rest)
	if err != nil {
		return nil, p.starting("looking for other systems that repair nodes", err)
	}
	look := func(ctx context.Context) error { return p.others.look(ctx, p.clients, objects) }
	return []manager.Runnable{p.again(otherRepairersEvery, look, "Drydock could not look for other systems that repair nodes; it uses the last result and tries again")}, nil
}
