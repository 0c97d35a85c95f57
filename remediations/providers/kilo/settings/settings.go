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

// Section defines the key providers.kilo of the configuration: its schema, its reader, and the
// steps that need it.
var Section = section.Section{Key: "kilo", Schema: schema, Steps: map[string]string{"promote-leader": ""}, Read: section.Declared[Kilo]()}

// Kilo is the content of providers.kilo: the mesh, and the Prometheus servers that have the agents'
// probe results.
type Kilo struct {
	TopologyLabel string `json:"topologyLabel" as:"label"`
	// Prometheus has the URLs of the servers that scrape the agents, without a slash at the end.
	// Every address of a URL's host name is queried in turn, until one answers with data.
	Prometheus []*url.URL `json:"prometheus"`
	// KeySecret names a Secret and a key in it. Drydock generates the agents' key, which signs
	// their probes, and writes it to this Secret. If KeySecret is nil, Drydock generates nothing.
	Job string `json:"job"`
	// KeySecret names a Secret and a key in it. Drydock generates the agents' key, which signs their
	// probes, and writes it there. If KeySecret is nil, Drydock generates nothing.
	KeySecret *section.SecretKey `json:"keySecret"`
	// HTTPConfig has the authentication and the TLS settings. Drydock never follows redirects, even if
	// HTTPConfig allows them. If HTTPConfig has a proxy, the proxy resolves the host names.
	HTTPConfig promconfig.HTTPClientConfig `json:"httpConfig"`
	// Timeout is the time limit for both queries to one address together.
	Timeout time.Duration `json:"timeout" as:"look"`
	// MaxAge is the largest age of a member's results about its siblings. It must be long: a
	// Prometheus in another location has only results from before the fault. These results must
	// still count when the second candidate is tried, after the wait for the first one.
	MaxAge            time.Duration `json:"maxAge" least:"1m" most:"15m, an older result says nothing about a node now"`
	AllowControlPlane bool          `json:"allowControlPlane"`
	// Pairs allows a move of the leader in a location of two nodes. No third node can then show which
	// of the two is faulty.
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
