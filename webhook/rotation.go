package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Rotation configures how the certificate is made and renewed. All replicas do this: the first to
// write the Secret wins, and the others use its certificate.
type Rotation struct {
	// The certificate and its authority. The Secret must exist and be mounted at CertDir.
	Secret types.NamespacedName
	// At least one.
	DNSNames []string
	// The ValidatingWebhookConfiguration that receives the authority. Drydock does not create it.
	Configuration string
	// Every CheckEvery, the certificate is renewed if less than RenewBefore of its Validity is
	// left. Zero means the default: a year, 90 days and 12 hours. The authority is valid for ten
	// years.
	Validity, RenewBefore, CheckEvery time.Duration
}

// After the rotator has given up, or while its Secret is missing.
const triesAgainAfter = 10 * time.Second

// rotation runs cert-controller's rotator, which ends its manager if the Secret is missing, or is
// not mounted for 15 minutes. Here this ends only the rotator: another one is started, and repairs
// continue.
type rotation struct {
	Rotation
	mgr     manager.Manager
	client  kubernetes.Interface
	certDir string
	clock   clock.WithTicker
	log     logr.Logger

	mu        sync.Mutex
	missing   error
	cert, key []byte // from the Secret, set by adopt
}

// Each rotator is a controller, and the names of controllers must differ.
var rotators atomic.Int64

func newRotation(mgr manager.Manager, o Options) *rotation {
	return &rotation{
		Rotation: *o.Rotation, mgr: mgr, client: o.Client, certDir: o.CertDir, clock: o.Clock, log: o.Log,
		missing: errors.New("the webhook's certificate has not been made yet"),
	}
}

// NeedLeaderElection returns false: replicas that do not lead serve admission, too, and need the
// certificate.
func (*rotation) NeedLeaderElection() bool { return false }

// Start maintains the certificate until ctx ends.
func (r *rotation) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		err := r.secretExists(ctx)
		if err == nil {
			err = r.rotate(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.note(err)
			r.log.Error(err, "the webhook's certificate cannot be maintained; Drydock tries again", "after", triesAgainAfter)
			select {
			case <-ctx.Done():
			case <-r.clock.After(triesAgainAfter):
			}
		}
	}
	return nil
}

func (r *rotation) lacks() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing
}

func (r *rotation) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing != nil { // a certificate that was made once can still be served
		r.missing = fmt.Errorf("the webhook's certificate: %w", err)
	}
}

// adopt reads the certificate from the Secret, which this or another replica has filled. The
// kubelet may take more than a minute to mount the new content of a Secret that was empty. Like the
// rotator, adopt requires that the API servers trust the authority.
func (r *rotation) adopt(ctx context.Context) error {
	secret, err := r.client.CoreV1().Secrets(r.Secret.Namespace).Get(ctx, r.Secret.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Secret %s: %w", r.Secret, err)
	}
	cert, key, authority := secret.Data["tls.crt"], secret.Data["tls.key"], secret.Data["ca.crt"]
	if len(cert) == 0 || len(key) == 0 || len(authority) == 0 {
		return fmt.Errorf("the Secret %s has no certificate yet", r.Secret)
	}
	c, err := r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, r.Configuration, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the ValidatingWebhookConfiguration %s: %w", r.Configuration, err)
	}
	if err == nil {
		for _, w := range c.Webhooks {
			if !bytes.Equal(w.ClientConfig.CABundle, authority) {
				return fmt.Errorf("the ValidatingWebhookConfiguration %s does not have the authority of the Secret %s yet", r.Configuration, r.Secret)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cert, r.key, r.missing = cert, key, nil
	return nil
}

func (r *rotation) adopted() (cert, key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cert, r.key
}

func (r *rotation) secretExists(ctx context.Context) error {
	if _, err := r.client.CoreV1().Secrets(r.Secret.Namespace).Get(ctx, r.Secret.Name, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("reading the Secret %s, which the chart makes: %w", r.Secret, err)
	}
	return nil
}

func (r *rotation) rotate(ctx context.Context) error {
	parts := &collector{Manager: r.mgr, config: oneOfEach(r.mgr.GetConfig(), r.Secret.Name, r.Configuration)}
	ready := make(chan struct{})
	err := rotator.AddRotator(parts, &rotator.CertRotator{
		SecretKey: r.Secret, CertDir: r.certDir, CAName: "drydock-webhook-ca", CAOrganization: "drydock",
		DNSName: r.DNSNames[0], ExtraDNSNames: r.DNSNames[1:], IsReady: ready,
		Webhooks:           []rotator.WebhookInfo{{Name: r.Configuration, Type: rotator.Validating}},
		ServerCertDuration: r.Validity, LookaheadInterval: r.RenewBefore, RotationCheckFrequency: r.CheckEvery,
		FieldOwner: "drydock", ControllerName: fmt.Sprintf("webhook-certificate-%d", rotators.Add(1)),
	})
	if err != nil {
		return fmt.Errorf("preparing the rotator: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range parts.runnables {
		g.Go(func() error { return part.Start(ctx) })
	}
	g.Go(func() error {
		select {
		case <-ready:
			r.mu.Lock()
			r.missing = nil
			r.mu.Unlock()
		case <-ctx.Done():
		}
		return nil
	})
	return g.Wait()
}

// A manager that collects the rotator's runnables instead of running them.
type collector struct {
	manager.Manager
	config    *rest.Config
	runnables []manager.Runnable
}

func (c *collector) Add(r manager.Runnable) error {
	c.runnables = append(c.runnables, r)
	return nil
}

func (c *collector) GetConfig() *rest.Config { return c.config }

// oneOfEach limits the lists and watches of the rotator's client to one Secret and one webhook
// configuration. Otherwise it would request every Secret of the namespace and every webhook
// configuration of the cluster, and Drydock has no right to read those.
func oneOfEach(c *rest.Config, secret, configuration string) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			var name string
			switch {
			case req.Method != http.MethodGet:
			case strings.HasSuffix(req.URL.Path, "/secrets"):
				name = secret
			case strings.HasSuffix(req.URL.Path, "/validatingwebhookconfigurations"):
				name = configuration
			}
			if name != "" {
				req = req.Clone(req.Context())
				q := req.URL.Query()
				q.Set("fieldSelector", "metadata.name="+name)
				req.URL.RawQuery = q.Encode()
			}
			return next.RoundTrip(req)
		})
	})
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
