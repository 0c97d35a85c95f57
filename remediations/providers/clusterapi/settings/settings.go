// Package settings is Cluster API's section of the configuration.
package settings

import (
	_ "embed"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.clusterAPI.
var Section = section.Section{Key: "clusterAPI", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Reading(read)}

// ClusterAPI is the Cluster API provider.
type ClusterAPI struct {
	Cluster types.NamespacedName
	// Delete: a Machine that no MachineHealthCheck selects is deleted.
	Delete  bool
	Timeout time.Duration
	// Kubeconfig is the file by which the management cluster is reached; empty: this cluster is its own.
	Kubeconfig string
	// NodeSelector says which Nodes it serves; nil: any that no other provider knows.
	NodeSelector k8slabels.Selector
	// Users are as whom Cluster API works on Nodes.
	Users []string
}

type raw struct {
	Cluster, Kubeconfig, WithoutHealthCheck, Timeout string

	NodeSelector *metav1.LabelSelector
	Users        []string
}

func read(r section.Reader, at section.Pointer, c *raw) section.Provider {
	timeout, _ := r.Duration(at.To("timeout"), c.Timeout, time.Second)
	return &ClusterAPI{
		Cluster:      r.NamespacedName(at.To("cluster"), c.Cluster),
		Delete:       c.WithoutHealthCheck == "delete",
		Timeout:      timeout,
		Kubeconfig:   r.SecretFile(at.To("kubeconfig"), c.Kubeconfig),
		NodeSelector: r.Nodes(at.To("nodeSelector"), c.NodeSelector),
		Users:        c.Users,
	}
}

// Serves is section.Provider's.
func (c *ClusterAPI) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}

// Configure is section.Configurer's: while Drydock repairs a machine in another way, its MachineHealthCheck is kept off.
func (*ClusterAPI) Configure(c *remediations.Config) { c.Reserves = true }

// Warn is section.Provider's.
func (c *ClusterAPI) Warn(section.Pointer, func(p section.Pointer, format string, args ...any)) {}
