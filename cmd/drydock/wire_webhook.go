package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/webhook"
)

// addWebhook adds the admission server where the configuration has one. ready says what it lacks.
func addWebhook(mgr manager.Manager, cfg *config.Config, clients kubernetes.Interface, fleet kube.Fleet, reg prometheus.Registerer, log logr.Logger) (ready func() error, err error) {
	w := cfg.Webhook
	if w == nil {
		return func() error { return nil }, nil
	}
	o := webhook.Options{
		Listen: w.Listen, CertDir: w.CertDir, ClientCAFile: w.ClientCAFile, Config: cfg.Core, Exempt: w.Exempt, Evictions: w.Evictions,
		Client: clients, Node: fleet.Cached,
		Nodes: func() []*corev1.Node {
			nodes, err := fleet.Nodes(context.Background())
			if err != nil {
				log.Error(err, "reading the cache of Nodes")
			}
			return nodes
		},
		Registerer: reg, Log: log.WithName("webhook"), Clock: clock.RealClock{},
	}
	if w.Rights {
		// Connections and a rate of its own: whoever keeps the webhook busy must not keep the leader from the API server.
		own := rest.CopyConfig(mgr.GetConfig())
		own.QPS, own.Burst, own.RateLimiter = 20, 40, nil
		reviews, err := kubernetes.NewForConfig(own)
		if err != nil {
			return nil, fmt.Errorf("preparing admission: the client that asks for people's rights: %w", err)
		}
		o.Reviews = reviews.AuthorizationV1().SubjectAccessReviews()
	}
	if w.Rotate {
		o.Rotation = &webhook.Rotation{
			Secret:   types.NamespacedName{Namespace: w.Secret.Namespace, Name: w.Secret.Name},
			DNSNames: w.DNSNames, Configuration: w.Configuration,
		}
	}
	s, err := webhook.Add(mgr, o)
	if err != nil {
		return nil, fmt.Errorf("preparing admission: %w", err)
	}
	return s.Ready, nil
}
