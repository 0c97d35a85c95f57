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
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// Options configure where to serve and how to judge.
type Options struct {
	// Listen is the TCP address, CertDir the folder with tls.crt and tls.key.
	Listen, CertDir string
	// ClientCAFile has the authorities that sign the API servers' client certificates. Empty: every
	// client is answered.
	ClientCAFile string
	// Rotation makes the certificate. Nil: another program puts it into CertDir.
	Rotation *Rotation
	// Config is the core's configuration. Exempt are users that repairs in flight do not bind, in
	// addition to the core's own.
	Config *remediations.Config
	// Drivers may cordon and uncordon a node while its repair is Verifying.
	Exempt  admission.Exemption
	Drivers admission.Drivers
	// Evictions: evictions are judged, too.
	Evictions bool
	// Client asks the API server for this process's own user name, and serves the rotation.
	Client kubernetes.Interface
	// Pods reads the pod of an eviction.
	Pods corev1client.PodsGetter
	// Reviews asks the API server which rights a user has. Nil: people's annotations need no rights
	// of their own.
	Reviews authorizationv1.SubjectAccessReviewInterface
	// Node returns a Node from the cache; nil: there is none. Nodes returns all. Repairing returns
	// those with a record of a repair. Its cost must not grow with the number of Nodes: any client
	// that reaches the port can cause a call.
	Node             func(name string) *corev1.Node
	Nodes, Repairing func() []*corev1.Node
	// Asked is called for each request that arrives. It must not block. Nil: not called.
	Asked func()
	// Registerer registers the metrics. Nil: they are not registered.
	Registerer prometheus.Registerer
	Log        logr.Logger
	Clock      clock.WithTicker
}

// address validates Listen.
func (o Options) address() error {
	_, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("reading the webhook's listen address: %w", err)
	}
	if port, err := strconv.Atoi(text); err != nil || port <= 0 {
		return fmt.Errorf("the webhook's port %q cannot be listened on: the API server must know it beforehand", text)
	}
	return nil
}

func (o Options) validate() error {
	switch {
	case o.Config == nil || o.Client == nil || o.Node == nil || o.Nodes == nil || o.Repairing == nil || o.Clock == nil || o.Evictions && o.Pods == nil:
		return errors.New("the webhook lacks a part that it cannot do without")
	case o.CertDir == "":
		return errors.New("the webhook has no folder with its certificate")
	}
	return o.address()
}
