// Package settings has the sections providers.daemonSets and providers.clusterWide of the
// configuration.
package settings

import (
	_ "embed"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

var (
	//go:embed daemonsets.json
	daemonSets string
	//go:embed clusterwide.json
	clusterWide string
)

// DaemonSetsSection and ClusterWideSection are the keys providers.daemonSets and
// providers.clusterWide of the configuration.
var (
	DaemonSetsSection = section.Section{
		Key: "daemonSets", Schema: daemonSets, Read: section.Declared[DaemonSets](),
		Steps: map[string]string{"restart-kube-proxy": ".kubeProxy", "restart-cni": ".cni"},
	}
	ClusterWideSection = section.Section{
		Key: "clusterWide", Schema: clusterWide, Read: section.Reading(readClusterWide),
		Steps: map[string]string{"rollout-restart": ".rolloutRestart", "apply-cni": ".cni"},
	}
)

// DaemonSets is the content of providers.daemonSets: the DaemonSets whose pod on a node may be
// restarted. An empty name means not configured.
type DaemonSets struct {
	KubeProxy types.NamespacedName `json:"kubeProxy"`
	CNI       types.NamespacedName `json:"cni"`
}

// Check implements section.Checker.
func (d *DaemonSets) Check(r section.Reader, at section.Pointer) {
	switch {
	case d.KubeProxy.Name == "" && d.CNI.Name == "" && !r.Faulty(at.To("kubeProxy")) && !r.Faulty(at.To("cni")):
		r.Fault(at, "names no DaemonSet; write kubeProxy or cni, or remove the section")
	case d.KubeProxy == d.CNI:
		r.Fault(at.To("cni"), "is the same DaemonSet as kubeProxy; remove one of them")
	}
}

// Serves implements section.Provider.
func (d *DaemonSets) Serves() (p remediations.Provider) {
	if d.KubeProxy.Name != "" {
		p.Steps = append(p.Steps, "restart-kube-proxy")
	}
	if d.CNI.Name != "" {
		p.Steps = append(p.Steps, "restart-cni")
	}
	return p
}

// ClusterWide is the content of providers.clusterWide. It allows steps that affect all nodes at the
// same time.
type ClusterWide struct {
	RolloutRestart []types.NamespacedName
	// CNI is the manifest for apply-cni. It is nil if apply-cni is not configured.
	CNI *CNIManifest
	// Bounds is how many nodes must be unhealthy before a step may affect all nodes.
	Bounds remediations.ClusterWide
}

// CNIManifest says where the manifest is: in a file, or in a ConfigMap under a key.
type CNIManifest struct {
	File         string
	ConfigMap    types.NamespacedName
	ConfigMapKey string
	DaemonSet    types.NamespacedName
}

type rawWide struct {
	RolloutRestart []string
	CNI            *struct{ ManifestFile, ConfigMap, DaemonSet string }
	MinNodes       int
	MinShare       any
}

func readClusterWide(r section.Reader, at section.Pointer, raw *rawWide) section.Provider {
	out := &ClusterWide{}
	for i, text := range raw.RolloutRestart {
		out.RolloutRestart = append(out.RolloutRestart, r.NamespacedName(at.To("rolloutRestart", i), text))
	}
	if c, p := raw.CNI, at.To("cni"); c != nil {
		out.CNI = &CNIManifest{DaemonSet: r.NamespacedName(p.To("daemonSet"), c.DaemonSet)}
		switch {
		case c.ManifestFile != "" && c.ConfigMap != "":
			r.Fault(p.To("configMap"), "must not be set together with manifestFile; remove one of them")
		case c.ManifestFile != "":
			out.CNI.File = r.SecretFile(p.To("manifestFile"), c.ManifestFile)
		case c.ConfigMap != "":
			name, key := c.ConfigMap[:strings.LastIndex(c.ConfigMap, "/")], c.ConfigMap[strings.LastIndex(c.ConfigMap, "/")+1:]
			out.CNI.ConfigMap, out.CNI.ConfigMapKey = r.NamespacedName(p.To("configMap"), name), key
		case !r.Faulty(p.To("manifestFile")) && !r.Faulty(p.To("configMap")):
			r.Fault(p.To("manifestFile"), "missing; write the manifest's file, or configMap: namespace/name/key")
		}
	}
	if len(raw.RolloutRestart) == 0 && raw.CNI == nil && !r.Faulty(at.To("rolloutRestart")) && !r.Faulty(at.To("cni")) {
		r.Fault(at, "allows no step; write rolloutRestart or cni, or remove the section")
	}
	out.Bounds = remediations.ClusterWide{MinNodes: raw.MinNodes, MinShare: r.Quantity(at.To("minShare"), raw.MinShare)}
	return out
}

// Serves implements section.Provider.
func (c *ClusterWide) Serves() (p remediations.Provider) {
	if len(c.RolloutRestart) > 0 {
		p.Steps = append(p.Steps, "rollout-restart")
	}
	if c.CNI != nil {
		p.Steps = append(p.Steps, "apply-cni")
	}
	return p
}

// Configure implements section.Configurer.
func (c *ClusterWide) Configure(core *remediations.Config) { core.ClusterWide = c.Bounds }

// Rolls reports whether the step rollout-restart may restart the DaemonSet (namespace/name).
func (c *ClusterWide) Rolls(daemonSet string) bool {
	return slices.ContainsFunc(c.RolloutRestart, func(n types.NamespacedName) bool { return n.String() == daemonSet })
}
