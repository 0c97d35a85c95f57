package config

func (b *builder) buildReceiver(raw *rawConfig) {
	at, r := pointer{"receiver"}, raw.Receiver
	b.config.Receiver = Receiver{
		Listen:       b.listen(at.to("listen"), r.Listen),
		TokenFile:    b.secretFile(at.to("tokenFile"), r.TokenFile),
		TLS:          b.tls(at.to("tls"), r.TLS),
		Insecure:     r.Insecure,
		MaxBodyBytes: r.MaxBodyBytes,
	}
	open := r.TokenFile == "" && r.TLS.ClientCAFile == "" && !r.Insecure && !loopback(r.Listen)
	unclear := b.faulty(at.to("listen")) || b.faulty(at.to("tls", "clientCAFile")) || b.faulty(at.to("insecure"))
	if open && !unclear {
		b.fault(at.to("tokenFile"), "missing; without a token or tls.clientCAFile the receiver starts only on loopback: "+
			"write tokenFile, or listen: 127.0.0.1:9095, or insecure: true")
	}
}
