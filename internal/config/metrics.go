package config

func (b *builder) buildMetrics(raw *rawConfig) {
	at, m := pointer{"metrics"}, raw.Metrics
	m.Listen = b.listen(at.To("listen"), m.Listen)
	m.TLS = b.tls(at.To("tls"), m.TLS)
	b.config.Metrics = m
	certFile := at.To("tls", "certFile")
	if m.Authenticate && m.TLS.CertFile == "" && !b.Faulty(certFile) {
		b.Fault(certFile, "missing; with authenticate, clients send tokens, which need TLS: write certFile and keyFile, or authenticate: false")
	}
}
