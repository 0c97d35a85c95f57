// Package settings has the section of the configuration for the provider bmc, which only tests use.
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

// Section is the section providers.bmc of the configuration.
var Section = section.Section{Key: "bmc", Schema: schema, Steps: map[string]string{"reboot": ""}, Read: section.Declared[BMC]()}

// BMC is the provider's configuration.
type BMC struct {
	URL          *url.URL           `json:"url"`
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Serves implements section.Provider.
func (b *BMC) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot"}, Scheme: "bmc://", NodeSelector: b.NodeSelector}
}
