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

// TLSFiles are the paths of PEM files. All are read again when they change. A set that does not fit
// together, as in the middle of a rotation, is logged, and the last good one stays in use.
type TLSFiles struct {
	// CertFile and KeyFile are the server's certificate, with its chain, and key.
	CertFile, KeyFile string
	// ClientCAFile has the authorities of client certificates. Set, every client needs a
	// certificate signed by one of them.
	ClientCAFile string
}

// MaxPEM bounds each file: an authority's bundle has a few hundred KiB.
const MaxPEM = 1 << 20

// Certificates are the TLS configuration made of the files as they are now.
type Certificates struct {
	name  string
	files TLSFiles
	until func() (cert, key []byte) // nil: the files must exist

	mu       sync.Mutex
	contents [3][]byte
	config   *tls.Config
	trouble  secretfile.Trouble
}

// NewCertificates reads the files. name is the server's name in errors, for example "the receiver".
func NewCertificates(name string, files TLSFiles) (*Certificates, error) {
	return NewCertificatesUntil(name, files, nil)
}

// NewCertificatesUntil is NewCertificates with a certificate and its key for as long as the file
// CertFile does not exist.
func NewCertificatesUntil(name string, files TLSFiles, until func() (cert, key []byte)) (*Certificates, error) {
	c := &Certificates{name: name, files: files, until: until}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// ServerConfig takes the configuration as it is at each handshake. HTTP/2 is left out: clients fall
// back to HTTP/1.1.
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
	c.trouble.Log(log, c.reload(), c.name+"'s TLS files are unusable; the last good ones stay in use")
	return c.config
}

// reload compares contents rather than times, because a mounted Secret swaps a
// symbolic link. The same configuration is kept while nothing changes, and with
// it the keys of session tickets; a changed client CA ends old sessions.
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
