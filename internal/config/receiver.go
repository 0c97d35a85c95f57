package config

func (b *builder) buildReceiver(raw *rawConfig) {
	at, r := pointer{"receiver"}, raw.Receiver
	b.config.Receiver = Receiver{
		Listen:       b.listen(at.To("listen"), r.Listen),
		TokenFile:    b.SecretFile(at.To("tokenFile"), r.TokenFile),
		TLS:          b.tls(at.To("tls"), r.TLS),
		Insecure:     r.Insecure,
		MaxBodyBytes: r.MaxBodyBytes,
	}
	open := r.TokenFile == "" && r.TLS.ClientCAFile == "" && !r.Insecure && !loopback(r.Listen)
	unclear := b.Faulty(at.To("listen")) || b.Faulty(at.To("tls", "clientCAFile")) || b.Faulty(at.To("insecure"))
	if open && !unclear {
		b.Fault(at.To("tokenFile"), "missing; without a token or tls.clientCAFile the receiver starts only on loopback: "+
			"write tokenFile, or listen: 127.0.0.1:9095, or insecure: true")
	}
}
