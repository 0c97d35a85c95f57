package daemonsets

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"drydock.dev/drydock/remediations/providers/kit"
)

const versionLabel = "app.kubernetes.io/version"

// The keys of versionsOf say where each version is from: the label, or a container's image. A nil
// value is a text that is not a version.
func versionsOf(ds *appsv1.DaemonSet) map[string]*version.Version {
	out := map[string]*version.Version{}
	if text, ok := ds.Labels[versionLabel]; ok {
		out["the label "+versionLabel] = semantic(text)
	}
	for _, list := range [][]corev1.Container{ds.Spec.Template.Spec.InitContainers, ds.Spec.Template.Spec.Containers} {
		for _, c := range list {
			out["container "+c.Name] = semantic(tagOf(c.Image))
		}
	}
	return out
}

func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

func semantic(text string) *version.Version {
	if v, err := version.ParseSemantic(text); err == nil {
		return v
	}
	v, err := version.ParseGeneric(text) // for example 1.36
	if err != nil {
		return nil
	}
	return v
}

// neverOlder returns an error if the wanted DaemonSet is older than the installed one in its label
// or any image. It also does if it cannot compare the versions. Otherwise it returns both versions,
// for a message.
func neverOlder(installed, wanted *appsv1.DaemonSet) (string, error) {
	have, want := versionsOf(installed), versionsOf(wanted)
	said := ""
	for _, where := range sortedKeys(want) {
		theirs, both := have[where]
		switch ours := want[where]; {
		case !both:
			continue // a part that is not installed cannot become older
		case ours == nil && theirs == nil && sameImage(installed, wanted, where):
			continue
		case ours == nil || theirs == nil:
			return "", kit.Refuse(kit.Machine, "Drydock cannot compare the version of %s: it is %s in the cluster and %s in the manifest", where, versionText(theirs), versionText(ours))
		case ours.LessThan(theirs):
			return "", kit.Refuse(kit.Machine, "%s has version %s in the cluster and %s in the manifest: Drydock never installs an older version", where, theirs, ours)
		case said == "" || strings.HasPrefix(where, "the label"):
			said = fmt.Sprintf("%s, %s in the cluster", ours, theirs)
		}
	}
	if said == "" {
		return "", kit.Refuse(kit.Machine, "DaemonSet %s/%s has no version that is in the cluster and in the manifest; set the label %s on both", wanted.Namespace, wanted.Name, versionLabel)
	}
	return said, nil
}

// With the same image the version is the same, even if the image's tag is not a version.
func sameImage(a, b *appsv1.DaemonSet, where string) bool {
	image := imageOf(a, where)
	return image != "" && image == imageOf(b, where)
}

func imageOf(ds *appsv1.DaemonSet, where string) string {
	for _, list := range [][]corev1.Container{ds.Spec.Template.Spec.InitContainers, ds.Spec.Template.Spec.Containers} {
		for _, c := range list {
			if "container "+c.Name == where {
				return c.Image
			}
		}
	}
	return ""
}

func versionText(v *version.Version) string {
	if v == nil {
		return "unknown"
	}
	return v.String()
}
