// Package settings has the section providers.civo of the configuration.
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

// Section is the key providers.civo of the configuration.
var Section = section.Section{Key: "civo", Schema: schema, Steps: map[string]string{"reboot": "", "replace": ""}, Read: section.Declared[Civo]()}

// Civo is the content of providers.civo.
type Civo struct {
	APIURL     *url.URL      `json:"apiURL"`
	ClusterID  string        `json:"clusterID"`
	Region     string        `json:"region"`
	APIKeyFile string        `json:"apiKeyFile" as:"file"`
	Timeout    time.Duration `json:"timeout"`
	// NodeSelector selects the Nodes that the provider serves. Nil selects all Nodes whose
	// spec.providerID begins with civo://.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Serves implements section.Provider.
func (c *Civo) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot", "replace"}, Scheme: "civo://", NodeSelector: c.NodeSelector}
}

// Testifies implements section.Testifier. It is true, because Civo knows whether an instance is
// running.
func (c *Civo) Testifies() bool { return true }

// Warn implements section.Warner.
func (c *Civo) Warn(at section.Pointer, say func(p section.Pointer, format string, args ...any)) {
	if c.APIURL.Scheme != "https" && !section.Loopback(c.APIURL.Hostname()) {
		say(at.To("apiURL"), "is not https, so the API key is sent unencrypted")
	}
}
