package receiver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority is a certificate authority that signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func sign(t testing.TB, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	a := authority{key: newKey(t)}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.pem = sign(t, a.cert, a.cert, a.key, a.key)
	block, _ := pem.Decode(a.pem)
	var err error
	a.cert, err = x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return a
}

// issue returns a certificate and key for server and client use.
func (a authority) issue(t testing.TB, serial int64) (certPEM, keyPEM []byte) {
	t.Helper()
	key := newKey(t)
	cert := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "leaf"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key, a.key)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// client returns a client that trusts the authority a. If by is not nil, the client has a
// certificate that by has signed. Each request uses a new connection.
func client(t testing.TB, a authority, by *authority) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.cert)
	if by != nil {
		pair, err := tls.X509KeyPair(by.issue(t, 77))
		require.NoError(t, err)
		// Sent whatever authorities the server names, as a stranger would.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

func TestClientCertificatesGuard(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, 2)
	files := TLSFiles{CertFile: put("tls.crt", cert), KeyFile: put("tls.key", key), ClientCAFile: put("ca.crt", ours.pem)}
	b := &book{}
	// No token: client certificates protect any address.
	s := newServer(t, Options{Listen: "0.0.0.0:0", TLS: files, Recorder: b})
	_, port, err := net.SplitHostPort(start(t, s))
	require.NoError(t, err)
	url := "https://127.0.0.1:" + port
	body := postOf(fire("n1"))

	code, err := postTo(t, client(t, ours, &ours), url, "", body)
	require.NoError(t, err)
	require.Equal(t, 200, code)
	_, err = postTo(t, client(t, ours, nil), url, "", body)
	require.ErrorContains(t, err, "certificate required")
	_, err = postTo(t, client(t, ours, &theirs), url, "", body)
	require.Error(t, err)
	code, err = postTo(t, http.DefaultClient, "http://127.0.0.1:"+port, "", body)
	if err == nil { // net/http's own answer, before any handler
		require.Equal(t, 400, code)
	}
	require.Len(t, b.names(), 1)

	// The files change: new authority, new certificate, at the next handshake.
	cert, key = theirs.issue(t, 3)
	put("tls.crt", cert) // for now without its key
	code, err = postTo(t, client(t, ours, &ours), url, "", body)
	require.NoError(t, err, "half a rotation changes nothing")
	require.Equal(t, 200, code)
	put("tls.key", key)
	put("ca.crt", theirs.pem)
	code, err = postTo(t, client(t, theirs, &theirs), url, "", body)
	require.NoError(t, err)
	require.Equal(t, 200, code)
	_, err = postTo(t, client(t, theirs, &ours), url, "", body)
	require.Error(t, err)

	put("ca.crt", []byte("no certificate"))
	code, err = postTo(t, client(t, theirs, &theirs), url, "", body)
	require.NoError(t, err, "the last good files stay in use")
	require.Equal(t, 200, code)
}

func TestTokenAndCertificateAreBothNeeded(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, 2)
	s := newServer(t, Options{
		TokenFile: write(t, "token", secret),
		TLS:       TLSFiles{CertFile: write(t, "crt", string(cert)), KeyFile: write(t, "key", string(key)), ClientCAFile: write(t, "ca", string(a.pem))},
	})
	url := "https://" + start(t, s)
	code, err := postTo(t, client(t, a, &a), url, "wrong", postOf())
	require.NoError(t, err)
	require.Equal(t, 401, code)
	code, err = postTo(t, client(t, a, &a), url, secret, postOf())
	require.NoError(t, err)
	require.Equal(t, 200, code)
	_, err = postTo(t, client(t, a, nil), url, secret, postOf())
	require.Error(t, err)
}
