package config

import (
	"net/url"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	promconfig "github.com/prometheus/common/config"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// Config is a checked configuration. It never changes.
type Config struct {
	// Mode is the global mode. Each policy also has a mode.
	Mode remediations.Mode

	Receiver     Receiver
	Metrics      Metrics
	HealthListen string
	// Webhook is nil if the admission server is not configured.
	Webhook        *Webhook
	LeaderElection LeaderElection
	Ledger         ObjectName
	Notify         Notify
	Alertmanager   Alertmanager
	Providers      map[string]section.Provider
	// concurrent is how many repairs may use a provider at the same time. 0 means no limit.
	concurrent map[string]int
	// ControlPlane is nil if it is not configured. If it is configured, StateDir is not empty.
	ControlPlane *ControlPlane
	StateDir     string

	// Core is the part of the configuration that Drydock's decisions use.
	Core *remediations.Config
	// Policies has the policies of Core.Policies, in the same order, with information for people.
	Policies []PolicyInfo
	// Unused is a sentence about shipped policies without effect in this installation, and about
	// skipped steps of the others. It is not a warning, because other shipped policies repair nodes.
	Unused string
}

// Receiver configures the server for Alertmanager's webhook requests (posts).
type Receiver struct {
	Listen string
	// TokenFile is the file with the bearer token. It is empty if no token is required.
	TokenFile string
	// TokenSecret is nil if Drydock generates no token.
	TokenSecret *section.SecretKey
	TLS         TLS
	// Insecure lets any client post alerts.
	Insecure     bool
	MaxBodyBytes int64
}

// Metrics configures the server of /metrics.
type Metrics struct {
	Listen string
	TLS    TLS
	// Authenticate makes the API server authenticate and authorize each scrape. If it is true, TLS
	// must have a certificate.
	Authenticate bool
}

// TLS has the files for a server's TLS. Without CertFile, the server uses plain HTTP. With
// ClientCAFile, it requires mutual TLS.
type TLS struct{ CertFile, KeyFile, ClientCAFile string }

// Webhook configures the server of the admission webhook.
type Webhook struct {
	Listen, CertDir string
	// ClientCAFile has the authorities of the API servers' client certificates. If it is empty,
	// clients need no certificate.
	ClientCAFile string
	// Rotate makes Drydock generate the certificate for DNSNames, store it in Secret, and write its
	// authority into the ValidatingWebhookConfiguration named Configuration. Otherwise Drydock only
	// reads the certificate in CertDir.
	Rotate        bool
	DNSNames      []string
	Secret        ObjectName
	Configuration string
	Evictions     bool
	// Rights makes the webhook require RBAC verbs on the resource repairs.drydock.dev for the
	// annotations of people.
	Rights bool
	Exempt admission.Exemption
	// Drivers has the user names of programs that install drivers on Nodes, by system.
	Drivers admission.Drivers
}

// LeaderElection configures the election of the replica that repairs.
type LeaderElection struct {
	Enabled bool
	Lease   ObjectName
	// Cluster is a Lease in the cluster. Only the Drydock installation that holds it may act.
	Cluster ObjectName

	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// ObjectName is the name of a namespaced object.
type ObjectName struct{ Namespace, Name string }

// Notify configures how the end of a repair is reported to people.
type Notify struct {
	// Alertmanager makes Drydock post an alert for each repair that ends. Labels are added to the
	// alert.
	Alertmanager bool
	Labels       map[string]string
}

// Alertmanager configures the requests to the Alertmanagers.
type Alertmanager struct {
	// URLs are the Alertmanagers' URLs, without a slash at the end.
	URLs       []*url.URL
	HTTPConfig promconfig.HTTPClientConfig
	// Receiver is the name, in Alertmanager's configuration, of the receiver that posts to Drydock.
	Receiver       string
	SilenceRepairs bool
	PollInterval   time.Duration
	// Watchdog is nil if Drydock does not check for the Watchdog alert.
	Watchdog labels.Matchers
	// BlindWhen selects alerts that report a missing source of alerts. While any of them is active,
	// Drydock is blind and holds every repair.
	BlindWhen []labels.Matchers
	// SourceSeen selects the shipped alert that fires while at least one Prometheus has the data of
	// all nodes. While this alert fires, another Prometheus' DrydockSourceDown holds no repair.
	SourceSeen labels.Matchers
}

// Selectors returns Watchdog and BlindWhen as text. watchdog is empty if Watchdog is nil.
func (a Alertmanager) Selectors() (watchdog string, blindWhen []string) {
	if len(a.Watchdog) > 0 {
		watchdog = a.Watchdog.String()
	}
	for _, m := range a.BlindWhen {
		blindWhen = append(blindWhen, m.String())
	}
	return watchdog, blindWhen
}

// PolicyInfo is a policy with more information for people.
type PolicyInfo struct {
	*remediations.Policy
	// From is where the policy comes from: the configuration's file, or "shipped".
	From string
	// shipped is the shipped policy with the same name, whose values this policy replaces, or nil.
	shipped map[string]any

	source *document
	at     pointer
	tree   any
}
