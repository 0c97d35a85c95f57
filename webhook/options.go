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

// Options configure where the webhook listens and how it decides.
type Options struct {
	// Listen is a TCP address. CertDir is the folder with tls.crt and tls.key.
	Listen, CertDir string
	// The authorities that sign the API servers' client certificates. If it is empty, the webhook
	// answers every client.
	ClientCAFile string
	// If it is nil, another program puts the certificate into CertDir.
	Rotation *Rotation
	Config   *remediations.Config
	// Exempt are users whose changes a repair in flight does not restrict, besides
	// admission.AlwaysExempt. Drivers may cordon and uncordon a node while its repair is Verifying.
	Exempt  admission.Exemption
	Drivers admission.Drivers
	// Whether evictions of pods are also checked.
	Evictions bool
	// Asks the API server for this process's own user name. The rotation uses it, too.
	Client kubernetes.Interface
	// Reads the pod of an eviction.
	Pods corev1client.PodsGetter
	// Asks the API server which rights a user has. If it is nil, people's annotations need no
	// rights beyond the right to patch nodes.
	Reviews authorizationv1.SubjectAccessReviewInterface
	// Node returns a Node from the cache, or nil. Repairing returns the Nodes with a record of a
	// repair. Its cost must not grow with the number of Nodes: any client that reaches the port can
	// cause a call.
	Node             func(name string) *corev1.Node
	Nodes, Repairing func() []*corev1.Node
	// Called for each request that is checked. It must not block. It may be nil.
	Asked func()
	// If it is nil, the metrics are not registered.
	Registerer prometheus.Registerer
	Log        logr.Logger
	Clock      clock.WithTicker
}

func (o Options) address() error {
	_, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("reading the webhook's listen address: %w", err)
	}
	if port, err := strconv.Atoi(text); err != nil || port <= 0 {
		return fmt.Errorf("the webhook cannot listen on port %q: it must be a number above 0, because the API server must know the port beforehand", text)
	}
	return nil
}

func (o Options) validate() error {
	switch {
	case o.Config == nil || o.Client == nil || o.Node == nil || o.Nodes == nil || o.Repairing == nil || o.Clock == nil || o.Evictions && o.Pods == nil:
		return errors.New("the webhook's options lack a part: Config, Client, Node, Nodes, Repairing, Clock, or Pods for evictions")
	case o.CertDir == "":
		return errors.New("the webhook's options lack CertDir, the folder with its certificate")
	}
	return o.address()
}
