// Package settings is Civo's section of the configuration.
package settings

import (
	_ "embed"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.civo.
var Section = section.Section{Key: "civo", Schema: schema, Steps: map[string]string{"reboot": "", "replace": ""}, Read: section.Reading(read)}

// Civo is the Civo provider.
type Civo struct {
	APIURL                        *url.URL
	ClusterID, Region, APIKeyFile string
	Timeout                       time.Duration
	// NodeSelector says which Nodes it serves; nil: those whose spec.providerID is Civo's.
	NodeSelector k8slabels.Selector
}

type raw struct {
	APIURL, ClusterID, Region, APIKeyFile, Timeout string

	NodeSelector *metav1.LabelSelector
}

func read(r section.Reader, at section.Pointer, c *raw) section.Provider {
	timeout, _ := r.Duration(at.To("timeout"), c.Timeout, time.Second)
	return &Civo{
		APIURL:    r.URL(at.To("apiURL"), c.APIURL),
		ClusterID: c.ClusterID, Region: c.Region,
		APIKeyFile:   r.SecretFile(at.To("apiKeyFile"), c.APIKeyFile),
		Timeout:      timeout,
		NodeSelector: r.Nodes(at.To("nodeSelector"), c.NodeSelector),
	}
}

// Serves is section.Provider's.
func (c *Civo) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot", "replace"}, Scheme: "civo://", NodeSelector: c.NodeSelector}
}

// Testifies is section.Testifier's: Civo knows whether an instance runs.
func (c *Civo) Testifies() bool { return true }

// Warn is section.Provider's.
func (c *Civo) Warn(at section.Pointer, say func(p section.Pointer, format string, args ...any)) {
	if c.APIURL.Scheme != "https" && !section.Loopback(c.APIURL.Hostname()) {
		say(at.To("apiURL"), "is not https: the API key travels in clear text")
	}
}
