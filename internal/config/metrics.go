package config

func (b *builder) buildMetrics(raw *rawConfig) {
	at, m := pointer{"metrics"}, raw.Metrics
	m.Listen = b.listen(at.to("listen"), m.Listen)
	m.TLS = b.tls(at.to("tls"), m.TLS)
	b.config.Metrics = m
	certFile := at.to("tls", "certFile")
	if m.Authenticate && m.TLS.CertFile == "" && !b.faulty(certFile) {
		b.fault(certFile, "missing; authenticate asks for tokens, which must not travel in clear text: write certFile and keyFile, or authenticate: false")
	}
}
