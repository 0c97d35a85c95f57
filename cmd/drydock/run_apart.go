package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const joinAgain = 3 * time.Second

// runApart runs the receiver and the repair of API servers, even while no API server answers. When
// the manager of the other parts ends, for example because the lead was lost, it makes a new one.
func (p *program) runApart(ctx context.Context) error {
	servers, err := p.servers(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range append(servers, p.recv, p.rescue) {
		g.Go(func() error { return part.Start(ctx) })
	}
	g.Go(func() error {
		for ctx.Err() == nil {
			if err := p.runManager(ctx); err != nil && ctx.Err() == nil {
				p.log.Error(err, "no node is repaired now, because the parts that need the API server do not run; trying again", "after", joinAgain)
			}
			select {
			case <-ctx.Done():
			case <-time.After(joinAgain):
			}
		}
		return nil
	})
	return g.Wait()
}

func (p *program) runManager(ctx context.Context) error {
	reg := &registrations{Registerer: metrics.Registry}
	defer reg.end()
	defer p.recorder.Store(nil)
	defer p.door.Close()
	defer p.ready.Store(nil)
	mgr, err := p.newManager(ctx, reg)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// registrations are unregistered when the manager ends, because the next manager registers metrics
// of the same names.
type registrations struct {
	prometheus.Registerer
	mu  sync.Mutex
	all []prometheus.Collector
}

func (r *registrations) Register(c prometheus.Collector) error {
	err := r.Registerer.Register(c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, c)
	}
	return err
}

func (r *registrations) MustRegister(all ...prometheus.Collector) {
	var errs []error
	for _, c := range all {
		errs = append(errs, r.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		panic(err) // as a Registerer does: two parts use the same name, which is a bug
	}
}

func (r *registrations) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		r.Unregister(c)
	}
}
