package main

import (
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/selftest"
)

// posts has the times when the self-test's alert last arrived at this replica, and when its
// receiver last refused a request.
type posts struct {
	arrivals *kube.Arrivals
	refused  atomic.Pointer[time.Time]
}

func newPosts(cfg *config.Config, clients kubernetes.Interface, log logr.Logger) *posts {
	return &posts{arrivals: kube.NewArrivals(clients, cfg.Ledger.Namespace, cfg.Ledger.Name, thisBuild().Now(), clock.RealClock{}, log.WithName("receiver"))}
}

func (p *posts) refuse() {
	now := time.Now()
	p.refused.Store(&now)
}

func (p *posts) known() selftest.Posts {
	out := selftest.Posts{Arrived: p.arrivals.Last()}
	if at := p.refused.Load(); at != nil {
		out.Refused = *at
	}
	return out
}
