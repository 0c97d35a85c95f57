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

// Config is a configuration that has been checked and can be run on. It never changes.
type Config struct {
	// Mode is the global mode; each policy has its own.
	Mode remediations.Mode

	Receiver Receiver
	Metrics  Metrics
	// HealthListen is the address of /healthz and /readyz.
	HealthListen string
	// Webhook is nil where there is to be no admission server.
	Webhook        *Webhook
	LeaderElection LeaderElection
	Ledger         ObjectName
	Alertmanager   Alertmanager
	// Providers are those of the configuration that own their section, by its key.
	Providers map[string]section.Provider
	// ControlPlane is nil where its hosts are not known. StateDir is not empty where they are.
	ControlPlane *ControlPlane
	StateDir     string

	// Core is what decisions rest on, compiled.
	Core *remediations.Config
	// Policies describes Core.Policies for people, in the same order.
	Policies []PolicyInfo
	// Unused says which shipped policies have no effect in this installation, and which of their steps are skipped; empty: none. Other
	// shipped policies repair nodes, so it is no warning.
	Unused string
}

// Receiver is the server that takes Alertmanager's posts.
type Receiver struct {
	Listen string
	// TokenFile is empty where no bearer token is asked for.
	TokenFile string
	// TokenSecret is where Drydock generates the token of TokenFile; nil: it generates none.
	TokenSecret *section.SecretKey
	TLS         TLS
	// Insecure lets anybody post.
	Insecure     bool
	MaxBodyBytes int64
}

// Metrics is the server of /metrics.
type Metrics struct {
	Listen string
	TLS    TLS
	// Authenticate: the API server is asked who scrapes, and whether they may. TLS has a certificate then.
	Authenticate bool
}

// TLS names the files of a server's TLS. Without CertFile it speaks plain HTTP; ClientCAFile asks for mutual TLS.
type TLS struct{ CertFile, KeyFile, ClientCAFile string }

// Webhook is the admission server.
type Webhook struct {
	Listen, CertDir string
	// ClientCAFile has the authorities of the API servers' client certificates; empty: none is asked for.
	ClientCAFile string
	// Rotate: Drydock makes the certificate, with these DNSNames, keeps it in Secret, and writes its authority into the
	// ValidatingWebhookConfiguration of that name. Otherwise it only reads CertDir.
	Rotate        bool
	DNSNames      []string
	Secret        ObjectName
	Configuration string
	// Evictions are looked at, too.
	Evictions bool
	// Rights: people's words ask for verbs on repairs.drydock.dev.
	Rights bool
	Exempt admission.Exemption
	// Drivers are the shipped ones and the configuration's own.
	Drivers admission.Drivers
}

// LeaderElection is the election of the replica that repairs.
type LeaderElection struct {
	Enabled bool
	Lease   ObjectName
	// Cluster is the Lease of the one Drydock that is in charge of the cluster.
	Cluster ObjectName

	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// ObjectName names a namespaced object.
type ObjectName struct{ Namespace, Name string }

// Alertmanager is the Alertmanager that is asked what is firing.
type Alertmanager struct {
	// URLs have no slash at the end.
	URLs       []*url.URL
	HTTPConfig promconfig.HTTPClientConfig
	// Receiver is Alertmanager's name for the receiver that posts to us.
	Receiver string
	// SilenceRepairs makes a silence for each node under repair.
	SilenceRepairs bool
	PollInterval   time.Duration
	// Watchdog selects the Watchdog alert; nil: it is not asked for.
	Watchdog labels.Matchers
	// BlindWhen selects alerts of which any active one makes us blind: entries are alternatives.
	BlindWhen []labels.Matchers
	// SourceSeen selects the shipped alert that fires while a Prometheus sees all nodes.
	SourceSeen labels.Matchers
}

// Selectors are Watchdog and BlindWhen as the client of the Alertmanagers takes them; an empty watchdog is not asked for.
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
	// shipped is the shipped policy of that name, which this one is laid over; nil: there is none.
	shipped map[string]any

	source *document
	at     pointer
	tree   any
}
