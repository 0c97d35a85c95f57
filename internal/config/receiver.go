package config

import (
	"errors"
	"io/fs"
	"os"
)

func (b *builder) buildReceiver(raw *rawConfig) {
	at, r := pointer{"receiver"}, raw.Receiver
	made := r.TokenSecret.Read(b, at.To("tokenSecret"))
	if made != nil && r.TokenFile == "" {
		b.Fault(at.To("tokenFile"), "missing; with tokenSecret, write the file at which the Secret is mounted, for example /etc/drydock/token")
	}
	b.config.Receiver = Receiver{
		Listen:       b.listen(at.To("listen"), r.Listen),
		TokenFile:    b.tokenFile(at.To("tokenFile"), r.TokenFile, made != nil),
		TokenSecret:  made,
		TLS:          b.tls(at.To("tls"), r.TLS),
		Insecure:     r.Insecure,
		MaxBodyBytes: r.MaxBodyBytes,
	}
	open := made == nil && r.TokenFile == "" && r.TLS.ClientCAFile == "" && !r.Insecure && !loopback(r.Listen)
	unclear := b.Faulty(at.To("listen")) || b.Faulty(at.To("tls", "clientCAFile")) || b.Faulty(at.To("insecure"))
	if open && !unclear {
		b.Fault(at.To("tokenFile"), "missing; without a token or tls.clientCAFile, the receiver may only listen on loopback: "+
			"write tokenFile, or listen: 127.0.0.1:9095, or insecure: true")
	}
}

// If Drydock generates the token, the file need not exist yet.
func (b *builder) tokenFile(p pointer, name string, generated bool) string {
	if resolved := b.resolve(name); generated {
		if _, err := os.Stat(resolved); errors.Is(err, fs.ErrNotExist) {
			return resolved
		}
	}
	return b.SecretFile(p, name)
}
