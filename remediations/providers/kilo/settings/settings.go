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

// Section is the key providers.kilo of the configuration.
var Section = section.Section{Key: "kilo", Schema: schema, Steps: map[string]string{"promote-leader": ""}, Read: section.Declared[Kilo]()}

// Kilo is the content of providers.kilo: the mesh, and the Prometheus servers that have the agents'
// probe results.
type Kilo struct {
	TopologyLabel string `json:"topologyLabel" as:"label"`
	// Prometheus are the servers that scrape the agents. Every address of a URL's host name is
	// queried in turn, until one answers with data.
	Prometheus []*url.URL `json:"prometheus"`
	// Job is a regular expression for the agents' scrape jobs.
	Job string `json:"job"`
	// KeySecret is the Secret for the key that signs the agents' probes. Drydock generates the key,
	// unless KeySecret is nil.
	KeySecret *section.SecretKey `json:"keySecret"`
	// HTTPConfig never allows redirects. If it has a proxy, the proxy resolves the host names.
	HTTPConfig promconfig.HTTPClientConfig `json:"httpConfig"`
	// Timeout limits both queries to one address together.
	Timeout time.Duration `json:"timeout" as:"look"`
	// MaxAge is the largest age of a member's results about its siblings. A Prometheus in another
	// location has only results from before the fault, and these must still count when the second
	// candidate is tried.
	MaxAge            time.Duration `json:"maxAge" least:"1m" most:"15m, an older result says nothing about a node now"`
	AllowControlPlane bool          `json:"allowControlPlane"`
	// Pairs allows a move in a location of two nodes, where no third node can show which of the two
	// is faulty.
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
