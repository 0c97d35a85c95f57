package webhook

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
)

// Options say where to serve and what to judge by.
type Options struct {
	// Listen is the TCP address, CertDir the folder with tls.crt and tls.key.
	Listen, CertDir string
	// Rotation makes the certificate; nil: somebody else puts it into CertDir.
	Rotation *Rotation
	// Config is what the core judges by. Exempt are those whom repairs in flight do not bind, beyond the core's own.
	Config *remediations.Config
	Exempt remediations.Exemption
	// Evictions are looked at, too.
	Evictions bool
	// Client reads a pod for each eviction, and asks the API server whom it takes this process for.
	Client kubernetes.Interface
	// Node returns a Node as it was last seen, nil: there is none. Nodes returns all of them.
	Node  func(name string) *corev1.Node
	Nodes func() []*corev1.Node
	// Registerer takes the metrics. Nil: not registered.
	Registerer prometheus.Registerer
	Log        logr.Logger
	Clock      clock.WithTicker
}

// address splits Listen for the server, which wants it in two.
func (o Options) address() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("reading the webhook's listen address: %w", err)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port <= 0 {
		return "", 0, fmt.Errorf("the webhook's port %q cannot be listened on: the API server must know it beforehand", text)
	}
	return host, port, nil
}

func (o Options) validate() error {
	switch {
	case o.Config == nil || o.Client == nil || o.Node == nil || o.Nodes == nil || o.Clock == nil:
		return errors.New("the webhook lacks a part that it cannot do without")
	case o.CertDir == "":
		return errors.New("the webhook has no folder with its certificate")
	}
	_, _, err := o.address()
	return err
}
