package config

import (
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
)

// DaemonSets are those of which a node's own pod may be restarted; one without a name is not configured.
type DaemonSets struct{ KubeProxy, CNI ObjectName }

// ClusterWide is the leave for steps that reach every node at once.
type ClusterWide struct {
	RolloutRestart []ObjectName
	// CNI is nil where apply-cni is not configured.
	CNI *CNIManifest
}

// CNIManifest is what apply-cni applies. It is in a file, or under a key of a ConfigMap.
type CNIManifest struct {
	File         string
	ConfigMap    ObjectName
	ConfigMapKey string
	DaemonSet    ObjectName
}

// namespaced splits a name that the schema has seen to be namespace/name.
func namespaced(text string) ObjectName {
	namespace, name, _ := strings.Cut(text, "/")
	return ObjectName{namespace, name}
}

func (b *builder) namespaced(p pointer, text string) ObjectName {
	out := namespaced(text)
	if text != "" && !b.Faulty(p) {
		b.namespace(p, out.Namespace)
		b.objectName(p, out.Name)
	}
	return out
}

func (b *builder) buildDaemonSets(raw *rawConfig) {
	d, at := raw.Providers.DaemonSets, pointer{"providers", "daemonSets"}
	if d == nil {
		return
	}
	b.config.DaemonSets = DaemonSets{KubeProxy: b.namespaced(at.To("kubeProxy"), d.KubeProxy), CNI: b.namespaced(at.To("cni"), d.CNI)}
	switch {
	case d.KubeProxy == "" && d.CNI == "" && !b.Faulty(at.To("kubeProxy")) && !b.Faulty(at.To("cni")):
		b.Fault(at, "names none; write kubeProxy or cni, or remove it")
	case d.KubeProxy == d.CNI:
		b.Fault(at.To("cni"), "is the same as kubeProxy; remove one of them, its pod is restarted once")
	}
}

func (b *builder) buildClusterWide(raw *rawClusterWide) {
	if raw == nil {
		return
	}
	at := pointer{"providers", "clusterWide"}
	out := &ClusterWide{}
	for i, text := range raw.RolloutRestart {
		out.RolloutRestart = append(out.RolloutRestart, b.namespaced(at.To("rolloutRestart", i), text))
	}
	if c, p := raw.CNI, at.To("cni"); c != nil {
		out.CNI = &CNIManifest{DaemonSet: b.namespaced(p.To("daemonSet"), c.DaemonSet)}
		switch {
		case c.ManifestFile != "" && c.ConfigMap != "":
			b.Fault(p.To("configMap"), "manifestFile is set, too; remove one of them")
		case c.ManifestFile != "":
			out.CNI.File = b.manifestFile(p.To("manifestFile"), c.ManifestFile)
		case c.ConfigMap != "":
			name, key := c.ConfigMap[:strings.LastIndex(c.ConfigMap, "/")], c.ConfigMap[strings.LastIndex(c.ConfigMap, "/")+1:]
			out.CNI.ConfigMap, out.CNI.ConfigMapKey = b.namespaced(p.To("configMap"), name), key
		case !b.Faulty(p.To("manifestFile")) && !b.Faulty(p.To("configMap")):
			b.Fault(p.To("manifestFile"), "missing; write the manifest's file, or configMap: namespace/name/key")
		}
	}
	if len(raw.RolloutRestart) == 0 && raw.CNI == nil && !b.Faulty(at.To("rolloutRestart")) && !b.Faulty(at.To("cni")) {
		b.Fault(at, "allows nothing; write rolloutRestart or cni, or remove it")
	}
	b.core.ClusterWide = remediations.ClusterWide{MinNodes: raw.MinNodes, MinShare: b.quantity(at.To("minShare"), raw.MinShare)}
	b.config.ClusterWide = out
}

// manifestFile is a file with no secret in it.
func (b *builder) manifestFile(p pointer, name string) string {
	name = b.resolve(name)
	if !b.skipFiles {
		b.file(p, name)
	}
	return name
}

// rolls says that rollout-restart may be asked for the DaemonSet.
func (c *ClusterWide) rolls(daemonSet string) bool {
	return slices.Contains(c.RolloutRestart, namespaced(daemonSet))
}
