package config

import (
	"crypto/tls"
	"crypto/x509"
)

func (b *builder) tls(at pointer, raw TLS) TLS {
	t := TLS{CertFile: b.resolve(raw.CertFile), KeyFile: b.resolve(raw.KeyFile), ClientCAFile: b.resolve(raw.ClientCAFile)}
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		b.Fault(at.To("keyFile"), "missing; write the file with the key of certFile")
	case t.CertFile == "" && t.KeyFile != "":
		b.Fault(at.To("certFile"), "missing; write the file with the certificate of keyFile")
	case t.CertFile == "" && t.ClientCAFile != "":
		b.Fault(at.To("certFile"), "missing; mutual TLS needs the server's certificate too, write certFile and keyFile")
	}
	b.checkTLS(at, t)
	return t
}

func (b *builder) checkTLS(at pointer, t TLS) {
	if b.skipFiles {
		return
	}
	cert, key := b.file(at.To("certFile"), t.CertFile), b.file(at.To("keyFile"), t.KeyFile)
	if cert != nil && key != nil {
		if _, err := tls.X509KeyPair(cert, key); err != nil {
			b.Fault(at.To("certFile"), "file %q is not a certificate for the key in keyFile (%v); write a pair in PEM", t.CertFile, err)
		}
	}
	b.authorities(at.To("clientCAFile"), t.ClientCAFile)
}

func (b *builder) authorities(at pointer, path string) {
	if b.skipFiles {
		return
	}
	if ca := b.file(at, path); ca != nil && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		b.Fault(at, "file %q contains no certificate; write one in PEM", path)
	}
}
