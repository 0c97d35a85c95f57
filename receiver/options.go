package receiver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/internal/httpserver"
)

// Options say where to listen, whom to trust and whom to hand alerts to.
type Options struct {
	// Listen is the TCP address. Default ":9095".
	Listen string
	// TokenFile has the bearer token that posts must carry, white space around it
	// not counted. It is read again at least once a second. Empty: no token is asked for.
	TokenFile string
	// MadeToken gives the token that Drydock makes itself, which counts while
	// TokenFile does not have it: the kubelet writes the file later. Empty: it is not
	// made yet, and posts are answered 503. Nil: TokenFile must be there at the start.
	MadeToken func() string
	// TLS are the certificates. With a token too, both are needed.
	TLS TLSFiles
	// Insecure allows to listen beyond loopback with neither a token nor client
	// certificates: whoever reaches the port can then start a look at a node,
	// though nothing more.
	Insecure bool
	// MaxBodyBytes is the longest body. Default 4 MiB.
	MaxBodyBytes int64
	// Recorder takes the alerts. Needed.
	Recorder Recorder
	// Refused is called for each post answered 401. It must not block. Nil: nobody
	// is told.
	Refused func()
	// Oversized is called for each post answered 413 with the sentence of the
	// answer, so that somebody can say which bound the post exceeds. It must not
	// block. Nil: nobody is told.
	Oversized func(why string)
	// Truncated is called with the number of alerts that Alertmanager cut off a
	// post (`max_alerts`): they exist and are not in it. It must not block. Nil:
	// it is only logged.
	Truncated func(alerts uint64)
	// Registerer takes the metrics. Nil: not registered.
	Registerer prometheus.Registerer
	// Logger is used for everything. Its zero value means the logger in the
	// context of Start.
	Logger logr.Logger
}

// TLSFiles are the paths of PEM files, read again when they change. Without CertFile and KeyFile, of which there are both or
// none, the receiver speaks plain HTTP.
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

// withDefaults fills in and refuses what cannot work, before any file is read.
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

// guarded says whether strangers are kept out, or are welcome on purpose.
func (o Options) guarded() bool {
	return o.TokenFile != "" || o.TLS.ClientCAFile != "" || o.Insecure
}

func (o Options) unguarded() error {
	return fmt.Errorf("the receiver would listen on %s for anybody: set receiver.tokenFile or receiver.tls.clientCAFile, listen on 127.0.0.1, or set receiver.insecure to true", o.Listen)
}

// isLoopback takes "localhost" on trust; Start looks at the address it became.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
