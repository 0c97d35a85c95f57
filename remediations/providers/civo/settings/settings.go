// Package settings is Civo's section of the configuration.
package settings

import (
	_ "embed"
	"net/url"
	"time"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.civo.
var Section = section.Section{Key: "civo", Schema: schema, Steps: map[string]string{"reboot": "", "replace": ""}, Read: section.Declared[Civo]()}

// Civo is the Civo provider.
type Civo struct {
	APIURL     *url.URL      `json:"apiURL"`
	ClusterID  string        `json:"clusterID"`
	Region     string        `json:"region"`
	APIKeyFile string        `json:"apiKeyFile" as:"file"`
	Timeout    time.Duration `json:"timeout"`
	// NodeSelector says which Nodes it serves; nil: those whose spec.providerID is Civo's.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Serves is section.Provider's.
func (c *Civo) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot", "replace"}, Scheme: "civo://", NodeSelector: c.NodeSelector}
}

// Testifies is section.Testifier's: Civo knows whether an instance runs.
func (c *Civo) Testifies() bool { return true }

// Warn is section.Warner's.
func (c *Civo) Warn(at section.Pointer, say func(p section.Pointer, format string, args ...any)) {
	if c.APIURL.Scheme != "https" && !section.Loopback(c.APIURL.Hostname()) {
		say(at.To("apiURL"), "is not https: the API key travels in clear text")
	}
}
