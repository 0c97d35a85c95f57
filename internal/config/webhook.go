package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/remediations/admission"
)

func (b *builder) buildWebhook(raw *rawConfig) {
	w := raw.Webhook
	if w == nil {
		return
	}
	at := pointer{"webhook"}
	for i, name := range w.DNSNames {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			b.Fault(at.To("dnsNames", i), "%q is not a DNS name; write for example drydock-webhook.drydock.svc", name)
		}
	}
	b.config.Webhook = &Webhook{
		Listen:       b.listen(at.To("listen"), w.Listen),
		CertDir:      b.resolve(w.CertDir),
		ClientCAFile: b.resolve(w.ClientCAFile),
		Rotate:       w.Certificates != "mounted",
		DNSNames:     w.DNSNames,
		Secret: ObjectName{
			b.Namespace(at.To("secret", "namespace"), w.Secret.Namespace),
			b.ObjectName(at.To("secret", "name"), w.Secret.Name),
		},
		Configuration: b.ObjectName(at.To("configuration"), w.Configuration),
		Evictions:     w.Evictions,
		Rights:        w.Rights,
		Exempt:        admission.Exemption{Users: w.Exempt.Users, Groups: w.Exempt.Groups},
		Drivers:       admission.ShippedDrivers().With(w.Drivers),
	}
	b.authorities(at.To("clientCAFile"), b.config.Webhook.ClientCAFile)
}

// everybody are groups of nearly all users. If one were exempt, admission would deny almost no
// changes.
var everybody = []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts"}

func (w *Webhook) exemptsNearlyAll() []int {
	var out []int
	for i, g := range w.Exempt.Groups {
		if slices.Contains(everybody, g) {
			out = append(out, i)
		}
	}
	return out
}
