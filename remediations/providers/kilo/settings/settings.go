// Package settings is the Kilo mesh's section of the configuration.
package settings

import (
	_ "embed"
	"net/url"
	"regexp"
	"time"

	promconfig "github.com/prometheus/common/config"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.kilo.
var Section = section.Section{Key: "kilo", Schema: schema, Steps: map[string]string{"promote-leader": ""}, Read: section.Reading(read)}

// maxWordAge bounds how much Prometheus is asked for, and how long ago a node may last have been heard that is chosen.
const maxWordAge = 15 * time.Minute

// Kilo is the Kilo mesh and the Prometheus that has the agents' words about it.
type Kilo struct {
	TopologyLabel string
	// Prometheus' URLs have no slash at the end.
	Prometheus []*url.URL
	// Job is a regular expression for the scrape jobs of the agents.
	Job string
	// KeySecret is where Drydock generates the agents' key, in that Key of the Secret; nil: it generates none.
	KeySecret  *section.SecretKey
	HTTPConfig promconfig.HTTPClientConfig
	// Timeout bounds one address, MaxAge is how old a node's last word may be.
	Timeout, MaxAge   time.Duration
	AllowControlPlane bool
	// Pairs allows a move in a location of two nodes.
	Pairs bool
}

type raw struct {
	TopologyLabel     string
	Prometheus        []string
	Job               string
	KeySecret         *section.SecretKey
	HTTPConfig        map[string]any
	Timeout, MaxAge   string
	AllowControlPlane bool
	Pairs             bool
}

func read(r section.Reader, at section.Pointer, raw *raw) section.Provider {
	r.LabelKey(at.To("topologyLabel"), raw.TopologyLabel)
	out := &Kilo{
		TopologyLabel:     raw.TopologyLabel,
		Prometheus:        r.URLs(at.To("prometheus"), raw.Prometheus),
		HTTPConfig:        r.HTTPConfig(at.To("httpConfig"), raw.HTTPConfig),
		Job:               raw.Job,
		KeySecret:         raw.KeySecret.Read(r, at.To("keySecret")),
		AllowControlPlane: raw.AllowControlPlane,
		Pairs:             raw.Pairs,
	}
	if _, err := regexp.Compile(raw.Job); err != nil && !r.Faulty(at.To("job")) {
		r.Fault(at.To("job"), "is no regular expression: %v", err)
	}
	out.Timeout = section.LookTimeout(r, at.To("timeout"), raw.Timeout, time.Second)
	var ok bool
	if out.MaxAge, ok = r.Duration(at.To("maxAge"), raw.MaxAge, time.Minute); ok && out.MaxAge > maxWordAge {
		r.Fault(at.To("maxAge"), "%s is too long; write at most 15m, an older word says nothing of a node now", raw.MaxAge)
	}
	return out
}

// Serves is section.Provider's.
func (*Kilo) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"promote-leader"}}
}

// Configure is section.Configurer's.
func (k *Kilo) Configure(core *remediations.Config) { core.TopologyLabel = k.TopologyLabel }

// Warn is section.Provider's.
func (*Kilo) Warn(section.Pointer, func(section.Pointer, string, ...any)) {}
