// Package settings is the configuration's section providers.kilo.
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

// Section declares providers.kilo: schema, reader, and steps.
var Section = section.Section{Key: "kilo", Schema: schema, Steps: map[string]string{"promote-leader": ""}, Read: section.Declared[Kilo]()}

// Kilo is the content of providers.kilo: the mesh, and the Prometheus servers that have the agents'
// probe results.
type Kilo struct {
	TopologyLabel string `json:"topologyLabel" as:"label"`
	// Prometheus are the servers that scrape the agents. Every address of a name is queried in turn,
	// until one answers with data. The URLs have no slash at the end.
	Prometheus []*url.URL `json:"prometheus"`
	// Job is a regular expression for the scrape jobs of the agents.
	Job string `json:"job"`
	// KeySecret is where Drydock generates the agents' key, in that Key of the Secret; nil: it
	// generates none.
	KeySecret *section.SecretKey `json:"keySecret"`
	// HTTPConfig has the authentication and the TLS settings. Drydock never follows redirects, even
	// if HTTPConfig allows them. With a proxy, the proxy resolves the names.
	HTTPConfig promconfig.HTTPClientConfig `json:"httpConfig"`
	// Timeout bounds both answers of one address together.
	Timeout time.Duration `json:"timeout" as:"look"`
	// MaxAge is how old a node's last result may be. It bounds how much is read from Prometheus,
	// and how long ago a node that is chosen may have reported last. If Prometheus is in another
	// location, the result of the second candidate is from before the fault, and the wait for the
	// first candidate comes on top.
	MaxAge            time.Duration `json:"maxAge" least:"1m" most:"15m, an older result says nothing about a node now"`
	AllowControlPlane bool          `json:"allowControlPlane"`
	// Pairs allows a move in a location of two nodes.
	Pairs bool `json:"pairs"`
}

// Check implements section.Checker.
func (k *Kilo) Check(r section.Reader, at section.Pointer) {
	if _, err := regexp.Compile(k.Job); err != nil && !r.Faulty(at.To("job")) {
		r.Fault(at.To("job"), "is not a regular expression: %v", err)
	}
}

// Serves implements section.Provider.
func (*Kilo) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"promote-leader"}}
}

// Configure implements section.Configurer.
func (k *Kilo) Configure(core *remediations.Config) { core.TopologyLabel = k.TopologyLabel }
