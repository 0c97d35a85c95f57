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

// Config is a checked configuration that the program can use. It never changes.
type Config struct {
	// Mode is the global mode; each policy has its own.
	Mode remediations.Mode

	Receiver Receiver
	Metrics  Metrics
	// HealthListen is the address of /healthz and /readyz.
	HealthListen string
	// Webhook is nil without an admission server.
	Webhook        *Webhook
	LeaderElection LeaderElection
	Ledger         ObjectName
	Notify         Notify
	Alertmanager   Alertmanager
	// Providers are the configured providers with a section of their own, by their keys.
	Providers map[string]section.Provider
	// concurrent is how many repairs may use each of them at once; zero: any number.
	concurrent map[string]int
	// ControlPlane is nil if its hosts are not configured. If they are, StateDir is not empty.
	ControlPlane *ControlPlane
	StateDir     string

	// Core is the compiled configuration for decisions.
	Core *remediations.Config
	// Policies describes Core.Policies for people, in the same order.
	Policies []PolicyInfo
	// Unused lists the shipped policies without effect in this installation, and the skipped steps
	// of others. Empty: none. Other shipped policies repair nodes, so this is not a warning.
	Unused string
}

// Receiver is the server for Alertmanager's posts.
type Receiver struct {
	Listen string
	// TokenFile is empty if no bearer token is required.
	TokenFile string
	// TokenSecret is where Drydock generates the token of TokenFile. Nil: it generates none.
	TokenSecret *section.SecretKey
	TLS         TLS
	// Insecure lets any client post.
	Insecure     bool
	MaxBodyBytes int64
}

// Metrics is the server of /metrics.
type Metrics struct {
	Listen string
	TLS    TLS
	// Authenticate: the API server authenticates and authorizes each scrape. TLS has a certificate
	// then.
	Authenticate bool
}

// TLS names the files of a server's TLS. Without CertFile the server uses plain HTTP. ClientCAFile
// requires mutual TLS.
type TLS struct{ CertFile, KeyFile, ClientCAFile string }

// Webhook is the admission server.
type Webhook struct {
	Listen, CertDir string
	// ClientCAFile has the authorities of the API servers' client certificates. Empty: no
	// certificate is required.
	ClientCAFile string
	// Rotate: Drydock makes the certificate with these DNSNames, stores it in Secret, and writes
	// its authority into the ValidatingWebhookConfiguration of that name. Otherwise it only reads
	// CertDir.
	Rotate        bool
	DNSNames      []string
	Secret        ObjectName
	Configuration string
	// Evictions: evictions are judged, too.
	Evictions bool
	// Rights: people's annotations require verbs on repairs.drydock.dev.
	Rights bool
	Exempt admission.Exemption
	// Drivers are the shipped drivers and the configured ones.
	Drivers admission.Drivers
}

// LeaderElection is the election of the replica that repairs.
type LeaderElection struct {
	Enabled bool
	Lease   ObjectName
	// Cluster is the Lease of the Drydock in charge of the cluster.
	Cluster ObjectName

	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// ObjectName names a namespaced object.
type ObjectName struct{ Namespace, Name string }

// Notify configures the notification of people about ended repairs.
type Notify struct {
	// Alertmanager posts an alert for each end. Labels are added to it.
	Alertmanager bool
	Labels       map[string]string
}

// Alertmanager configures the requests to the Alertmanagers for firing alerts.
type Alertmanager struct {
	// URLs have no slash at the end.
	URLs       []*url.URL
	HTTPConfig promconfig.HTTPClientConfig
	// Receiver is Alertmanager's name for the receiver that posts to Drydock.
	Receiver string
	// SilenceRepairs creates a silence for each node under repair.
	SilenceRepairs bool
	PollInterval   time.Duration
	// Watchdog selects the Watchdog alert. Nil: it is not checked.
	Watchdog labels.Matchers
	// BlindWhen selects alerts that make Drydock blind when one is active. The entries are
	// alternatives.
	BlindWhen []labels.Matchers
	// SourceSeen selects the shipped alert that fires while a Prometheus sees all nodes.
	SourceSeen labels.Matchers
}

// Selectors returns Watchdog and BlindWhen for the client of the Alertmanagers. An empty watchdog
// is not checked.
func (a Alertmanager) Selectors() (watchdog string, blindWhen []string) {
	if len(a.Watchdog) > 0 {
		watchdog = a.Watchdog.String()
	}
	for _, m := range a.BlindWhen {
		blindWhen = append(blindWhen, m.String())
	}
	return watchdog, blindWhen
}

// PolicyInfo describes a policy for people.
type PolicyInfo struct {
	*remediations.Policy
	// From is the configuration's file, or "shipped".
	From string
	// shipped is the shipped policy of that name, which this policy overrides. Nil: there is none.
	shipped map[string]any

	source *document
	at     pointer
	tree   any
}
