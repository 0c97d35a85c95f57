// Package settings is Cluster API's section of the configuration.
package settings

import (
	_ "embed"
	"time"

	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.clusterAPI.
var Section = section.Section{Key: "clusterAPI", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Declared[ClusterAPI]()}

// ClusterAPI is the Cluster API provider.
type ClusterAPI struct {
	Cluster types.NamespacedName `json:"cluster"`
	// WithoutHealthCheck says how to treat a Machine that no MachineHealthCheck selects.
	WithoutHealthCheck string        `json:"withoutHealthCheck"`
	Timeout            time.Duration `json:"timeout"`
	// Kubeconfig is the file for the connection to the management cluster; empty: this cluster
	// manages itself.
	Kubeconfig string `json:"kubeconfig" as:"file"`
	// NodeSelector selects the Nodes that the provider serves; nil: any that no other provider
	// knows.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the users that Cluster API's requests about Nodes come from.
	Users []string `json:"users"`
}

// Delete: a Machine that no MachineHealthCheck selects is deleted.
func (c *ClusterAPI) Delete() bool { return c.WithoutHealthCheck == "delete" }

// Serves implements section.Provider.
func (c *ClusterAPI) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}

// Configure implements section.Configurer: while Drydock repairs a machine in another way, its
// MachineHealthCheck is kept off.
func (*ClusterAPI) Configure(c *remediations.Config) { c.Reserves = true }
