// Package settings has the section providers.clusterAPI of the configuration.
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

// Section is the key providers.clusterAPI of the configuration.
var Section = section.Section{Key: "clusterAPI", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Declared[ClusterAPI]()}

// ClusterAPI is the content of providers.clusterAPI.
type ClusterAPI struct {
	Cluster types.NamespacedName `json:"cluster"`
	// WithoutHealthCheck is conditions or delete: how a replacement is requested if no
	// MachineHealthCheck selects the Machine.
	WithoutHealthCheck string        `json:"withoutHealthCheck"`
	Timeout            time.Duration `json:"timeout"`
	// Kubeconfig is the path of a kubeconfig for the management cluster. Empty means this cluster.
	Kubeconfig string `json:"kubeconfig" as:"file"`
	// NodeSelector selects the Nodes that the provider serves. Nil selects all Nodes that no other
	// provider claims.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the user names that Cluster API's controllers use in their requests about Nodes.
	Users []string `json:"users"`
}

// Delete reports whether a Machine that no MachineHealthCheck selects is replaced by deleting it.
func (c *ClusterAPI) Delete() bool { return c.WithoutHealthCheck == "delete" }

// Serves implements section.Provider.
func (c *ClusterAPI) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}

// Configure implements section.Configurer. Reserves keeps the MachineHealthCheck from replacing a
// machine during another repair.
func (*ClusterAPI) Configure(c *remediations.Config) { c.Reserves = true }
