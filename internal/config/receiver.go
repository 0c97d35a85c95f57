package config

import (
	"crypto/tls"
	"crypto/x509"
)

func (b *builder) buildReceiver(raw *rawConfig) {
	at, r := pointer{"receiver"}, raw.Receiver
	tlsAt := at.to("tls")
	b.config.Receiver = Receiver{
		Listen:    b.listen(at.to("listen"), r.Listen),
		TokenFile: b.secretFile(at.to("tokenFile"), r.TokenFile),
		TLS: TLS{
			CertFile:     b.resolve(r.TLS.CertFile),
			KeyFile:      b.resolve(r.TLS.KeyFile),
			ClientCAFile: b.resolve(r.TLS.ClientCAFile),
		},
		Insecure:     r.Insecure,
		MaxBodyBytes: r.MaxBodyBytes,
	}
	switch t := r.TLS; {
	case t.CertFile != "" && t.KeyFile == "":
		b.fault(tlsAt.to("keyFile"), "missing; write the file with the key of certFile")
	case t.CertFile == "" && t.KeyFile != "":
		b.fault(tlsAt.to("certFile"), "missing; write the file with the certificate of keyFile")
	case t.CertFile == "" && t.ClientCAFile != "":
		b.fault(tlsAt.to("certFile"), "missing; mutual TLS needs the server's certificate too, write certFile and keyFile")
	}
	b.checkTLS(tlsAt)
	open := r.TokenFile == "" && r.TLS.ClientCAFile == "" && !r.Insecure && !loopback(r.Listen)
	unclear := b.faulty(at.to("listen")) || b.faulty(tlsAt.to("clientCAFile")) || b.faulty(at.to("insecure"))
	if open && !unclear {
		b.fault(at.to("tokenFile"), "missing; without a token or tls.clientCAFile the receiver starts only on loopback: "+
			"write tokenFile, or listen: 127.0.0.1:9095, or insecure: true")
	}
}

func (b *builder) checkTLS(at pointer) {
	t := b.config.Receiver.TLS
	if b.skipFiles {
		return
	}
	cert, key := b.file(at.to("certFile"), t.CertFile), b.file(at.to("keyFile"), t.KeyFile)
	if cert != nil && key != nil {
		if _, err := tls.X509KeyPair(cert, key); err != nil {
			b.fault(at.to("certFile"), "file %q is no certificate for the key in keyFile (%v); write a pair in PEM", t.CertFile, err)
		}
	}
	b.authorities(at.to("clientCAFile"), t.ClientCAFile)
}

// authorities checks a file of certificates.
func (b *builder) authorities(at pointer, path string) {
	if b.skipFiles {
		return
	}
	if ca := b.file(at, path); ca != nil && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		b.fault(at, "file %q holds no certificate; write one in PEM", path)
	}
}
