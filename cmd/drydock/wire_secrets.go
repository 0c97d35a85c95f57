package main

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/internal/config"
	kilosettings "drydock.dev/drydock/remediations/kilo/settings"
	"drydock.dev/drydock/remediations/kube"
)

// makeSecrets makes the values that the configuration lets Drydock generate. They are not read yet.
func (p *program) makeSecrets() {
	generated := func(namespace, name, key string) *kube.OwnSecret {
		s := kube.NewOwnSecret(p.clients, types.NamespacedName{Namespace: namespace, Name: name}, key, clock.RealClock{}, p.log.WithName("secrets"))
		p.secrets = append(p.secrets, s)
		return s
	}
	if s := p.cfg.Receiver.TokenSecret; s != nil {
		p.token = generated(s.Namespace, s.Name, s.Key)
	}
	if k, ok := config.Of[*kilosettings.Kilo](p.cfg); ok && k.KeySecret != nil {
		generated(k.KeySecret.Namespace, k.KeySecret.Name, k.KeySecret.Key)
	}
}

// keepingSecrets are the parts that generate and keep these values.
func (p *program) keepingSecrets() (out []manager.Runnable) {
	for _, s := range p.secrets {
		out = append(out, s)
	}
	return out
}
