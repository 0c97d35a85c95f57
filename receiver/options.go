package receiver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/remediations/intake"
)

// Options configure where to listen, which clients to trust and who receives the alerts.
type Options struct {
	// Listen is the TCP address. Default ":9095".
	Listen string
	// TokenFile has the bearer token of the posts; surrounding white space is ignored. It is read
	// again at least once a second. Empty: no token is required.
	TokenFile string
	// MadeToken returns the token that Drydock generates. It counts until TokenFile has it: the
	// kubelet writes the file later. If it returns an empty text, the token is not generated yet,
	// and posts get 503. Nil: TokenFile must exist at the start.
	MadeToken func() string
	// TLS are the certificates. Posts must have both a token and a client certificate if both are
	// configured.
	TLS TLSFiles
	// Insecure allows listening beyond loopback with neither a token nor client certificates. Any
	// client that reaches the port can then make Drydock check a node, but no more.
	Insecure bool
	// MaxBodyBytes is the longest body. Default 4 MiB.
	MaxBodyBytes int64
	// Recorder takes the alerts. Required.
	Recorder intake.Recorder
	// Refused is called for each post answered 401. It must not block. Nil: not called.
	Refused func()
	// Oversized is called for each post answered 413, with the sentence of the answer, which names
	// the exceeded limit. It must not block. Nil: not called.
	Oversized func(why string)
	// Truncated is called with the number of alerts that Alertmanager left out of a post
	// (`max_alerts`): they exist but are not in it. It must not block. Nil: they are only logged.
	Truncated func(alerts uint64)
	// Registerer registers the metrics. Nil: they are not registered.
	Registerer prometheus.Registerer
	// Logger is used for all logs. Its zero value means the logger in the context of Start.
	Logger logr.Logger
}

// TLSFiles are the paths of PEM files, which are read again when they change. CertFile and KeyFile
// go together. Without them, the receiver serves plain HTTP.
type TLSFiles httpserver.TLSFiles

func (f TLSFiles) validate() error {
	switch {
	case (f.CertFile == "") != (f.KeyFile == ""):
		return errors.New("the receiver's tls.certFile and tls.keyFile have to be set together")
	case f.ClientCAFile != "" && f.CertFile == "":
		return errors.New("the receiver's tls.clientCAFile needs tls.certFile and tls.keyFile")
	}
	return nil
}

const defaultListen = ":9095"

// withDefaults sets the defaults and refuses options that cannot work, before any file is read.
func (o Options) withDefaults() (Options, error) {
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = defaultMaxBodyBytes
	}
	if o.MaxBodyBytes < 0 {
		return o, fmt.Errorf("the receiver's maxBodyBytes is %d; it must be positive", o.MaxBodyBytes)
	}
	if o.Recorder == nil {
		return o, errors.New("the receiver has no recorder to hand alerts to")
	}
	if err := o.TLS.validate(); err != nil {
		return o, err
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return o, fmt.Errorf("reading the receiver's listen address: %w", err)
	}
	if !o.guarded() && !isLoopback(host) {
		return o, o.unguarded()
	}
	return o, nil
}

// guarded reports whether strangers are kept out or explicitly allowed.
func (o Options) guarded() bool {
	return o.TokenFile != "" || o.TLS.ClientCAFile != "" || o.Insecure
}

func (o Options) unguarded() error {
	return fmt.Errorf("the receiver would listen on %s for anybody: set receiver.tokenFile or receiver.tls.clientCAFile, listen on 127.0.0.1, or set receiver.insecure to true", o.Listen)
}

// isLoopback trusts the name "localhost"; Start checks the address that it resolves to.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
