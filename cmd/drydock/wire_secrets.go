package main

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations/kube"
	kilosettings "drydock.dev/drydock/remediations/providers/kilo/settings"
)

// makeSecrets reads and generates nothing yet.
func (p *program) makeSecrets() {
	generated := func(of *section.SecretKey) *kube.OwnSecret {
		s := kube.NewOwnSecret(p.clients, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, of.Key, clock.RealClock{}, p.log.WithName("secrets"))
		p.secrets = append(p.secrets, s)
		return s
	}
	if s := p.cfg.Receiver.TokenSecret; s != nil {
		p.token = generated(s)
	}
	if k, ok := config.Of[*kilosettings.Kilo](p.cfg); ok && k.KeySecret != nil {
		generated(k.KeySecret)
	}
}

func (p *program) keepingSecrets() (out []manager.Runnable) {
	for _, s := range p.secrets {
		out = append(out, s)
	}
	return out
}
