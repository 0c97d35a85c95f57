package httpserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/go-logr/logr"

	"drydock.dev/drydock/internal/secretfile"
)

// TLSFiles has the paths of PEM files, which are read again when they change. In the middle of a
// rotation, they may not fit together. The server then logs an error and continues with the last
// valid files.
type TLSFiles struct {
	// CertFile has the server's certificate with its chain. KeyFile has its private key.
	CertFile, KeyFile string
	// ClientCAFile has the certificate authorities of the clients. If it is not empty, every client
	// needs a certificate that one of them has signed.
	ClientCAFile string
}

// MaxPEM is the largest size of each file. A bundle of authorities has a few hundred KiB.
const MaxPEM = 1 << 20

// Certificates reads the TLS files again at each handshake.
type Certificates struct {
	name  string
	files TLSFiles
	until func() (cert, key []byte) // if not nil, returns the certificate and key while CertFile does not exist

	mu       sync.Mutex
	contents [3][]byte
	config   *tls.Config
	trouble  secretfile.Trouble
}

// NewCertificates reads the files. name is the server's name in errors, for example "the receiver".
func NewCertificates(name string, files TLSFiles) (*Certificates, error) {
	return NewCertificatesUntil(name, files, nil)
}

// NewCertificatesUntil is like NewCertificates, but CertFile need not exist yet. Until then, the
// server uses the certificate and the key of the given function.
func NewCertificatesUntil(name string, files TLSFiles, until func() (cert, key []byte)) (*Certificates, error) {
	c := &Certificates{name: name, files: files, until: until}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// ServerConfig returns a configuration that uses the present files at each handshake. It allows
// only HTTP/1.1.
func (c *Certificates) ServerConfig(log logr.Logger) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current(log), nil
		},
	}
}

func (c *Certificates) current(log logr.Logger) *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble.Log(log, c.reload(), c.name+"'s TLS files are unusable; the server continues with the last valid ones")
	return c.config
}

// reload compares contents and not file times, because a mounted Secret is updated by a symbolic
// link. Without a change, it keeps the configuration and its keys for session tickets. A new client
// CA makes old sessions invalid.
func (c *Certificates) reload() error {
	var contents [3][]byte
	paths := []string{c.files.CertFile, c.files.KeyFile, c.files.ClientCAFile}
	if _, err := os.Stat(c.files.CertFile); errors.Is(err, fs.ErrNotExist) && c.until != nil {
		contents[0], contents[1] = c.until()
		paths[0], paths[1] = "", ""
	}
	for i, path := range paths {
		if path == "" {
			continue
		}
		content, err := secretfile.Read(c.name+"'s TLS files", path, MaxPEM)
		if err != nil {
			return err
		}
		contents[i] = content
	}
	same := func(i int) bool { return bytes.Equal(contents[i], c.contents[i]) }
	if c.config != nil && same(0) && same(1) && same(2) {
		return nil
	}
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return fmt.Errorf("reading %s's TLS files %s and %s: %w", c.name, c.files.CertFile, c.files.KeyFile, err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
		Certificates: []tls.Certificate{pair},
	}
	if c.files.ClientCAFile != "" {
		config.ClientCAs = x509.NewCertPool()
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(contents[2]) {
			return fmt.Errorf("reading %s's TLS file %s: the file has no certificate", c.name, c.files.ClientCAFile)
		}
	}
	c.contents, c.config = contents, config
	return nil
}
