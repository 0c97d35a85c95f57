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

// Options configure the receiver's address, the clients that it trusts, and the Recorder of the
// alerts.
type Options struct {
	// The TCP address. Default ":9095".
	Listen string
	// The bearer token that each post must have. White space around it is ignored. The file is read
	// again at least once a second. If it is empty, no token is required.
	TokenFile string
	// The token that Drydock generates, valid until TokenFile has one: the kubelet writes the file
	// only some time later. While it returns "", no token is generated yet, and posts get 503. If
	// it is nil, TokenFile must exist at the start.
	MadeToken func() string
	// If both a token and client certificates are configured, posts need both.
	TLS TLSFiles
	// Allows the receiver to listen beyond loopback with neither a token nor client certificates.
	// Any client that reaches the port can then make Drydock check a node, but no more.
	Insecure bool
	// The longest body. Default 4 MiB.
	MaxBodyBytes int64
	// Writes the alerts on their Nodes. Required.
	Recorder intake.Recorder
	// Called for each post that is answered 401. It must not block. It may be nil.
	Refused func()
	// Called for each post that is answered 413, with the sentence of the answer, which names the
	// exceeded limit. It must not block. It may be nil.
	Oversized func(why string)
	// Called with the number of active alerts that Alertmanager left out of a post because of its
	// `max_alerts`. It must not block. If it is nil, the number is only logged.
	Truncated func(alerts uint64)
	// If it is nil, the metrics are not registered.
	Registerer prometheus.Registerer
	// If it is the zero value, the logger in the context of Start is used.
	Logger logr.Logger
}

// TLSFiles are the paths of PEM files, which are read again when they change. CertFile and KeyFile
// must be set together. Without them, the receiver serves plain HTTP.
type TLSFiles httpserver.TLSFiles

func (f TLSFiles) validate() error {
	switch {
	case (f.CertFile == "") != (f.KeyFile == ""):
		return errors.New("the receiver's tls.certFile and tls.keyFile must be set together")
	case f.ClientCAFile != "" && f.CertFile == "":
		return errors.New("the receiver's tls.clientCAFile needs tls.certFile and tls.keyFile")
	}
	return nil
}

const defaultListen = ":9095"

// withDefaults refuses options that cannot work, before any file is read.
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
		return o, errors.New("the receiver's options lack a Recorder")
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

// Whether the receiver may listen beyond loopback.
func (o Options) guarded() bool {
	return o.TokenFile != "" || o.TLS.ClientCAFile != "" || o.Insecure
}

func (o Options) unguarded() error {
	return fmt.Errorf("the receiver would accept posts from any client on %s: set receiver.tokenFile or receiver.tls.clientCAFile, listen on 127.0.0.1, or set receiver.insecure to true", o.Listen)
}

// isLoopback accepts "localhost" without resolving it. Start checks the address that the server
// listens on.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
