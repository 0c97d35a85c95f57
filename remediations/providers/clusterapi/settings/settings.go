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

// Section defines the key providers.clusterAPI of the configuration: its schema, its reader, and
// the steps that need it.
var Section = section.Section{Key: "clusterAPI", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Declared[ClusterAPI]()}

// ClusterAPI is the content of providers.clusterAPI.
type ClusterAPI struct {
	Cluster types.NamespacedName `json:"cluster"`
	// WithoutHealthCheck is the form of the request if no MachineHealthCheck selects the Machine:
	// conditions, or delete.
	WithoutHealthCheck string        `json:"withoutHealthCheck"`
	Timeout            time.Duration `json:"timeout"`
	// Kubeconfig is the path of a kubeconfig for the management cluster. If it is empty, this
	// cluster is the management cluster.
	Kubeconfig string `json:"kubeconfig" as:"file"`
	// NodeSelector selects the Nodes that the provider serves. A nil selector selects all Nodes
	// that no other provider claims.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the user names that Cluster API's controllers use in their requests about Nodes.
	Users []string `json:"users"`
}

// Delete reports whether Drydock deletes the Machine to replace it, if no MachineHealthCheck
// selects the Machine.
func (c *ClusterAPI) Delete() bool { return c.WithoutHealthCheck == "delete" }

// Serves implements section.Provider.
func (c *ClusterAPI) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}

// Configure implements section.Configurer. It sets Reserves, so that Drydock can prevent the
// MachineHealthCheck from replacing a machine while Drydock repairs it in another way.
func (*ClusterAPI) Configure(c *remediations.Config) { c.Reserves = true }
