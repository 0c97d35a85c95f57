package remediations

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is a kind of target that Drydock repairs. The value is part of annotation keys.
type Kind string

const (
	// KindNode is the node itself.
	KindNode Kind = ""
	// KindSidecar is the sidecar of a pod.
	KindSidecar Kind = "sidecar"
	// KindLocation is a location of the mesh: a group of nodes with one leader. Its record is on the
	// Node of the leader.
	KindLocation Kind = "leader"
	// KindAPIServer are the API servers. The record of their repair is on no Node.
	KindAPIServer Kind = "apiserver"
)

// TargetKind describes a kind of target other than nodes that this installation supports.
type TargetKind struct {
	Kind Kind
	// Name returns the name of the alert's target, from the labels that the policy lists. It
	// returns an error if they name no target.
	Name func(p *Policy, labels map[string]string) (string, error)
	// Unknown is the Misroute of an alert whose target does not exist. If it is empty,
	// MisrouteNoTarget is used.
	Unknown Misroute
	// Called is the noun for one target in messages, with its article. If it is empty, the kind's
	// name is used.
	Called string
	// Selects is a phrase for messages: what a policy of this kind selects, for example "pods of
	// its provider". If it is empty, the policy selects nodes.
	Selects string
	// NotAsked is why a person cannot request a repair of this kind on a Node. It is empty if a person
	// can request one.
	NotAsked string
	// Served reports whether this installation can repair targets of this kind, apart from the
	// plan's first step, which Config.Serves checks. If Served is nil, there is nothing more to
	// check.
	Served func(c *Config) bool
}

// kind returns the TargetKind for this kind of target. For a kind that is not configured, it
// returns one with only the Kind.
func (c *Config) kind(of Kind) TargetKind {
	for _, k := range c.Kinds {
		if k.Kind == of {
			return *k
		}
	}
	return TargetKind{Kind: of}
}

// Called returns the noun for one target of the kind in messages, for example "a sidecar".
func (c *Config) Called(kind Kind) string { return cmp.Or(c.kind(kind).Called, "a "+string(kind)) }

// Misroute is why Drydock does not handle an alert. Its values are label values of the metric
// drydock_alerts_received_total.
type Misroute string

const (
	MisrouteNone            Misroute = ""
	MisrouteNoPolicy        Misroute = "no_policy"
	MisrouteNoTarget        Misroute = "no_target"
	MisrouteUnknownNode     Misroute = "unknown_node"
	MisrouteUnknownPod      Misroute = "unknown_pod"
	MisrouteUnknownLocation Misroute = "unknown_location"
	MisrouteOtherCluster    Misroute = "other_cluster"
)

// Unknown returns the Misroute of an alert that names a target of this kind which does not exist.
func (c *Config) Unknown(kind Kind) Misroute {
	return cmp.Or(c.kind(kind).Unknown, MisrouteNoTarget)
}

// NameOf returns the name of the target that an alert with these labels is about, if the policy
// takes the alert. It returns an error if the labels name no target.
func (c *Config) NameOf(p *Policy, labels map[string]string) (string, error) {
	if p.Kind == KindNode {
		return nodeName(p, labels)
	}
	if name := c.kind(p.Kind).Name; name != nil {
		return name(p, labels)
	}
	return "", fmt.Errorf("policy %s is about a kind of target that is not known here: %q", p.Name, p.Kind)
}

func nodeName(p *Policy, labels map[string]string) (string, error) {
	if len(p.Labels) != 1 {
		return "", errors.New("no label of the policy names a node")
	}
	name := labels[p.Labels[0]]
	return name, ValidNodeName(name)
}

// one reports whether a Node has at most one record of the kind. A repair of such a kind occupies
// the whole Node: the Node's phase label shows it, and the admission webhook protects the Node.
func (k Kind) one() bool { return k == KindNode || k == KindLocation }

// KeyOf returns the annotation key of the record of a target, from the target's kind and name.
func KeyOf(kind Kind, name string) string {
	switch {
	case kind == KindNode:
		return NodeRepairKey
	case kind.one():
		return RepairPrefix + string(kind)
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s%s-%x", RepairPrefix, kind, sum[:8])
}

// kindOfKey returns the kind of target whose record has this annotation key. It returns false if
// the key is not the key of a record.
func kindOfKey(key string) (Kind, bool) {
	if key == NodeRepairKey {
		return KindNode, true
	}
	name, _, hash := strings.Cut(strings.TrimPrefix(key, RepairPrefix), "-")
	kind := Kind(name)
	return kind, kind != KindNode && kind.one() == !hash
}

// name returns the name of the record's target, or "" for the node itself.
func (r *Record) name() string {
	if r.Pod != nil {
		return r.Pod.String()
	}
	return cmp.Or(r.Location, r.Target)
}

// kind returns the kind of the record's target. Records of sidecars and of locations have their own
// fields, Pod and Location. For any other named target, kind returns the field Target of the
// remediation in the parameter of.
func (r *Record) kind(of Remediation) Kind {
	switch {
	case r.Pod != nil:
		return KindSidecar
	case r.Location != "":
		return KindLocation
	case r.Target != "":
		return of.Target
	}
	return KindNode
}

// Shares reports whether other repairs may run on the Node at the same time. Only the repair of a
// sidecar returns true. It excludes only the repair of the node itself.
func (r *Record) Shares() bool { return r.Pod != nil }

// Subject is one target on a Node: the node itself, a sidecar or a mesh location, with its record
// and alerts.
type Subject struct {
	// Key is the annotation key of the target's record.
	Key string
	// Name is the target's name, which is unique for its kind on the Node. It is empty for the node
	// itself.
	Name string
	// Record is the target's repair, or nil.
	Record *Record
	// Alerts are the alerts about the target, oldest first. It is nil for the node itself, whose
	// alerts are in the Journal.
	Alerts []Alert
}

// Subjects returns the targets of the kind that have a record or an alert in the journal. Targets
// with a record come first, then the others by the age of their alerts. If a Node can have only one
// record of the kind, Subjects leaves out alerts about a second target until the first target is
// done.
func (c *Config) Subjects(kind Kind, j Journal) []Subject {
	if kind == KindNode { // the node is always a target, also without a record or an alert
		return []Subject{{Key: NodeRepairKey, Record: j.Record}}
	}
	var out []Subject
	add := func(key, name string) *Subject {
		i := slices.IndexFunc(out, func(s Subject) bool { return s.Key == key })
		if i < 0 {
			i = len(out)
			out = append(out, Subject{Key: key, Name: name})
		}
		return &out[i]
	}
	if len(j.Records) > 0 { // skipped for most Nodes, because each pass calls this for every Node
		records := j.Of(kind)
		for _, key := range slices.Sorted(maps.Keys(records)) {
			add(key, records[key].name()).Record = records[key]
		}
	}
	for _, a := range j.Alerts {
		p := c.Policy(a.Policy)
		if p == nil || p.Kind != kind {
			continue
		}
		if name, err := c.NameOf(p, a.Labels); err == nil {
			if s := add(KeyOf(kind, name), name); s.Name == name {
				s.Alerts = append(s.Alerts, a)
			}
		}
	}
	return out
}

// Entry returns the target's name in the history (Entry.Target): the record's annotation key
// without RepairPrefix.
func (s *Subject) Entry() string { return strings.TrimPrefix(s.Key, RepairPrefix) }

// KindOf returns the kind of a history entry's target: the part of Entry.Target before the first
// hyphen. So all sidecars of a node have the same kind.
func KindOf(target string) Kind { kind, _, _ := strings.Cut(target, "-"); return Kind(kind) }
