// Package settings is the section of the configuration of a provider that Drydock does not have: a
// test's.
package settings

import (
	"net/url"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

const schema = `{
  "description": "Machines with a board of their own.",
  "type": "object", "additionalProperties": false,
  "required": ["url"],
  "properties": {
    "url": {"$ref": "#/$defs/url", "description": "Where all boards answer.", "examples": ["http://127.0.0.1:8000"]},
    "nodeSelector": {"$ref": "#/$defs/nodeSelector", "description": "The nodes that this provider serves."}
  }
}`

// Section is providers.bmc.
var Section = section.Section{Key: "bmc", Schema: schema, Steps: map[string]string{"reboot": ""}, Read: section.Declared[BMC]()}

// BMC is the provider as it is configured.
type BMC struct {
	URL          *url.URL           `json:"url"`
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Serves is section.Provider's.
func (b *BMC) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot"}, Scheme: "bmc://", NodeSelector: b.NodeSelector}
}
