package main

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/selftest"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/kube"
)

// posts is what the receiver of this replica tells the self-test.
type posts struct {
	arrivals *kube.Arrivals
	refused  atomic.Pointer[time.Time]
}

func newPosts(cfg *config.Config, clients kubernetes.Interface, log logr.Logger) *posts {
	return &posts{arrivals: kube.NewArrivals(clients, cfg.Ledger.Namespace, cfg.Ledger.Name, clock.RealClock{}, log.WithName("receiver"))}
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

// selfTestsOf gives the self-test's alerts in the core's terms.
func selfTestsOf(r alertmanager.Replica) []remediations.SelfTestAlert {
	var out []remediations.SelfTestAlert
	for _, s := range r.SelfTest {
		a := remediations.SelfTestAlert{Receivers: s.Receivers}
		switch {
		case len(s.SilencedBy) > 0:
			a.Quiet = "silenced by " + strings.Join(s.SilencedBy, ", ")
		case len(s.InhibitedBy) > 0:
			a.Quiet = "inhibited by the alert " + strings.Join(s.InhibitedBy, ", ")
		case len(s.MutedBy) > 0:
			a.Quiet = "muted by the time interval " + strings.Join(s.MutedBy, ", ")
		}
		out = append(out, a)
	}
	return out
}
