// Package settings is the configuration's section providers.clusterAPI.
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

// Section declares providers.clusterAPI: schema, reader, and steps.
var Section = section.Section{Key: "clusterAPI", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Declared[ClusterAPI]()}

// ClusterAPI is the content of providers.clusterAPI.
type ClusterAPI struct {
	Cluster types.NamespacedName `json:"cluster"`
	// WithoutHealthCheck is how to request the replacement of a Machine that no MachineHealthCheck
	// selects: by conditions, or by delete.
	WithoutHealthCheck string        `json:"withoutHealthCheck"`
	Timeout            time.Duration `json:"timeout"`
	// Kubeconfig is the path of a kubeconfig for the management cluster. If it is empty, this
	// cluster is the management cluster.
	Kubeconfig string `json:"kubeconfig" as:"file"`
	// NodeSelector selects the Nodes that the provider serves. A nil selector selects all Nodes
	// that no other provider claims.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the user names in the requests of Cluster API's controllers about Nodes.
	Users []string `json:"users"`
}

// Delete reports whether Drydock deletes a Machine that no MachineHealthCheck selects.
func (c *ClusterAPI) Delete() bool { return c.WithoutHealthCheck == "delete" }

// Serves implements section.Provider.
func (c *ClusterAPI) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}

// Configure implements section.Configurer. Reserves lets Drydock prevent the MachineHealthCheck
// from replacing a machine that Drydock repairs in another way.
func (*ClusterAPI) Configure(c *remediations.Config) { c.Reserves = true }
