package config

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

// rawConfig has the defaults, but its values are not checked yet.
type rawConfig struct {
	Mode    string
	Cluster struct{ Label, Value string }

	Receiver struct {
		Listen, TokenFile string
		TokenSecret       *section.SecretKey
		TLS               TLS
		Insecure          bool
		MaxBodyBytes      int64
	}
	Metrics Metrics
	Health  struct{ Listen string }
	Webhook *struct {
		Listen, CertDir, ClientCAFile, Certificates, Configuration string

		DNSNames  []string
		Secret    struct{ Namespace, Name string }
		Evictions bool
		Rights    bool
		Exempt    struct{ Users, Groups []string }
		Drivers   map[string][]string
	}
	LeaderElection struct {
		Enabled                                   bool
		Namespace, Name                           string
		LeaseDuration, RenewDeadline, RetryPeriod string
		Cluster                                   struct{ Namespace, Name string }
	}
	Ledger struct{ Namespace, Name string }

	Notify struct {
		Alertmanager bool
		Labels       map[string]string
	}
	Alertmanager struct {
		URLs                       []string
		HTTPConfig                 map[string]any
		Receiver, Require          string
		SilenceRepairs             bool
		PollInterval, MaxStaleness string
		Watchdog, SelfTest         string
		BlindWhen                  []string
	}
	Limits struct {
		Concurrent, ConcurrentPerZone, ConcurrentPerPool any
		PoolLabels                                       []string
		ZoneLabel                                        string
		Unhealthy                                        any
		RepairsPerNode                                   int
		RepairsWindow, StormCooldown, StartupGrace       string
		CommonCause                                      struct {
			Nodes  int
			Within string
		}
		Sidecars struct{ Concurrent int }
		Leaders  struct {
			Concurrent  int
			PerLocation string
		}
	}
	Announce []string
	HoldWhen struct{ Taints, Labels, Annotations, Conditions map[string]rawMark }
	Windows  []struct {
		Days               []string
		From, To, Timezone string
	}
	StateDir     string
	ControlPlane *rawControlPlane
	Policies     []rawPolicy
}

type rawPolicy struct {
	Name         string
	Match        []string
	NodeSelector *metav1.LabelSelector
	Target       struct {
		Node, Pod, Namespace, Location string
		APIServer                      bool
	}
	Witness       any
	Mode          string
	For           string
	Plan          []rawStep
	ProofFor      string
	Cooldown      string
	RelapseWindow string
	Approval      bool
	OnExhausted   string
	EndWhenWell   string

	RepairCordoned bool
}

type rawStep struct {
	Step, Wait string
	Attempts   *int
	Soft       bool
	Timeout    string
	OnTimeout  string
	// OnUnreachable has a default only for steps of nodes that need a provider's answer first.
	OnUnreachable string
	// WithoutController has a default only for the step drain.
	WithoutController string

	Provider string

	Unit, DaemonSet string
	Template        *remediations.Template
}

type rawControlPlane struct {
	Hosts []struct {
		Name, Address string
		Addresses     []string
	}
	Port   int
	CAFile string
}

// decode runs after the validation. It fails only if the schema allows a value that does not fit
// the Go type.
func (d *document) decode(out any) {
	data, err := json.Marshal(d.tree)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		d.whole(1, "cannot be decoded: %v", err)
	}
}
