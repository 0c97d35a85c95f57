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

// joinAgain is the pause, after the lead was lost or the API server did not answer, before the
// parts that need the API server are made again.
const joinAgain = 3 * time.Second

// runApart keeps the receiver and the rescue running whether or not the API server answers. The
// parts that need the API server run beside them, from its first answer until the lead is lost.
// Then they are made again: nothing of a former leader remains, as if the process had ended.
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
				p.log.Error(err, "nothing that needs the API server is done now; trying again", "after", joinAgain)
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

// runManager makes one manager and runs it until it ends.
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

// registrations are the metrics of one manager's parts. They are unregistered with the manager: the
// next one uses the same names.
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
		panic(err) // like a Registerer: two parts of this program use the same name
	}
}

func (r *registrations) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		r.Unregister(c)
	}
}
