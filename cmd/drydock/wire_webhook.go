package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/webhook"
)

// asked has the times when this process began to serve the admission webhook, and when the
// webhook's last request came.
type asked struct {
	serving time.Time
	last    atomic.Pointer[time.Time]
}

func (a *asked) ask() {
	now := time.Now()
	a.last.Store(&now)
}

func (a *asked) known() *ledger.Admission {
	out := &ledger.Admission{Serving: remediations.Instant(a.serving)}
	if at := a.last.Load(); at != nil {
		out.Last = remediations.Instant(*at)
	}
	return out
}

func (j *joined) addWebhook() error {
	w := j.cfg.Webhook
	if w == nil {
		j.admits = func() error { return nil }
		return nil
	}
	o := webhook.Options{
		Listen: w.Listen, CertDir: w.CertDir, ClientCAFile: w.ClientCAFile, Config: j.cfg.Core, Exempt: w.Exempt, Drivers: w.Drivers, Evictions: w.Evictions,
		Client: j.clients, Pods: j.clients.CoreV1(), Node: j.fleet.Cached, Repairing: j.fleet.Repairing,
		Nodes: func() []*corev1.Node {
			nodes, err := j.fleet.Nodes(context.Background())
			if err != nil {
				j.log.Error(err, "admission could not read the cache of Nodes")
			}
			return nodes
		},
		Asked:      j.asked.ask,
		Registerer: j.reg, Log: j.log.WithName("webhook"), Clock: clock.RealClock{},
	}
	if w.Rights {
		o.Reviews = j.clients.AuthorizationV1().SubjectAccessReviews()
	}
	if w.Rotate {
		o.Rotation = &webhook.Rotation{
			Secret:   types.NamespacedName{Namespace: w.Secret.Namespace, Name: w.Secret.Name},
			DNSNames: w.DNSNames, Configuration: w.Configuration,
		}
	}
	s, err := webhook.Add(j.manager, o)
	if err != nil {
		return fmt.Errorf("preparing admission: %w", err)
	}
	j.admits = s.Ready
	return nil
}
