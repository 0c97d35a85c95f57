package sim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Certificate is a self-signed certificate, as new BMCs have.
type Certificate struct{ tls.Certificate }

// SelfSigned makes a Certificate for the loopback interface.
func SelfSigned() (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bmc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// PEM returns the certificate in PEM.
func (c Certificate) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate.Certificate[0]})
}

// Fingerprint returns the SHA-256 of the certificate, in hexadecimal.
func (c Certificate) Fingerprint() string {
	sum := sha256.Sum256(c.Certificate.Certificate[0])
	return hex.EncodeToString(sum[:])
}

// TLS returns the configuration for a server.
func (c Certificate) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.Certificate}}
}
