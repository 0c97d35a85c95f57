package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

type authority struct {
	dir     string
	cert    *x509.Certificate
	certPEM []byte
	key     *ecdsa.PrivateKey
}

type keypair struct {
	certPEM, keyPEM   []byte
	certFile, keyFile string
}

func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the certificates' folder: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	template := template("drydock-lab-ca")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	a := &authority{dir: dir, cert: cert, key: key, certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	return a, os.WriteFile(a.file(), a.certPEM, 0o600)
}

func (a *authority) file() string { return filepath.Join(a.dir, "ca.crt") }

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue makes a certificate for a server on the loopback addresses and for a client with this name.
func (a *authority) issue(name string, groups ...string) (keypair, error) {
	return a.issueFor(nil, name, groups...)
}

func (a *authority) issueFor(addresses []net.IP, name string, groups ...string) (keypair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keypair{}, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template := template(name, groups...)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = append(slices.Clip(addresses), net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)) // 10.0.0.1 is the address of the Service "kubernetes"
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default.svc"}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keypair{}, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keypair{}, fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	file := filepath.Join(a.dir, filepath.Base(name))
	k := keypair{
		certPEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		certFile: file + ".crt",
		keyFile:  file + ".key",
	}
	for path, data := range map[string][]byte{k.certFile: k.certPEM, k.keyFile: k.keyPEM} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return keypair{}, fmt.Errorf("writing the certificate of %s: %w", name, err)
		}
	}
	return k, nil
}

func (k keypair) tls() (tls.Certificate, error) { return tls.X509KeyPair(k.certPEM, k.keyPEM) }

func template(name string, groups ...string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // crypto/rand.Reader never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(30 * 24 * time.Hour),
	}
}
