package remediations

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Announcements are the annotations by which other systems are asked to leave a node alone, by the names that the configuration has
// for them. They stand on a Node while it is under repair.
var Announcements = map[string]string{
	"cluster-autoscaler": "cluster-autoscaler.kubernetes.io/scale-down-disabled",
	"karpenter":          "karpenter.sh/do-not-disrupt",
}

// AnnouncedAs is the value of each: the only one that those systems take.
const AnnouncedAs = "true"

// Announced says that the Node's annotation is an announcement that Drydock has on record, with its value.
func (j Journal) Announced(n *corev1.Node, key string) bool {
	return n.Annotations[key] == AnnouncedAs && slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.Kind == UndoAnnotation && u.Key == key })
}

// Unannounced are those of the configured announcements that are not on the Node, and that the record does not have: what a person set
// is left alone, and what a person took off is not set again.
func (c *Config) Unannounced(n *corev1.Node, r *Record) (keys []string) {
	for _, key := range c.Announce {
		_, there := n.Annotations[key]
		recorded := slices.ContainsFunc(r.Undo, func(u Undo) bool { return u.Kind == UndoAnnotation && u.Key == key })
		if !there && !recorded {
			keys = append(keys, key)
		}
	}
	return keys
}

// Kept are the annotations of other systems that must be read of each Node.
func (c *Config) Kept() []string {
	return append(c.HoldWhen.Keys(MarkAnnotation), c.Announce...)
}

// OwnsAnnotation says whether Drydock alone owns the annotation of the Node: one that somebody else has set as well is not Drydock's
// to take off.
func OwnsAnnotation(n *corev1.Node, key string) (bool, error) {
	owners, err := FieldOwners(n, "f:metadata", "f:annotations", "f:"+key)
	for _, o := range owners {
		if o.Manager != FieldManager {
			return false, err
		}
	}
	return len(owners) > 0, err
}
