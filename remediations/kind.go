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
	// KindLocation is a group of nodes of the mesh with one leader. Its record is on the leader's
	// Node.
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
	// The Misroute of an alert whose target does not exist. Empty means MisrouteNoTarget.
	Unknown Misroute
	// The noun for one target in messages, with its article. Empty means the kind's name.
	Called string
	// What a policy of this kind selects, in messages, for example "pods of its provider". Empty
	// means nodes.
	Selects string
	// Why a person cannot request a repair of this kind on a Node. Empty if a person can.
	NotAsked string
	// Whether this installation can repair such targets, apart from the plan's first step. Nil
	// means yes.
	Served func(c *Config) bool
}

// kind returns a TargetKind with only its Kind if the kind is not configured.
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

// Misroute is why an alert is not handled: a label value of the metric
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

// NameOf returns the name of the target of an alert that the policy takes. It returns an error if
// the labels name no target.
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

// one reports whether a Node has at most one record of the kind. Such a repair occupies the whole
// Node: the admission webhook protects it.
func (k Kind) one() bool { return k == KindNode || k == KindLocation }

// KeyOf returns the annotation key of the record of a target.
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

func kindOfKey(key string) (Kind, bool) {
	if key == NodeRepairKey {
		return KindNode, true
	}
	name, _, hash := strings.Cut(strings.TrimPrefix(key, RepairPrefix), "-")
	kind := Kind(name)
	return kind, kind != KindNode && kind.one() == !hash
}

func (r *Record) name() string {
	if r.Pod != nil {
		return r.Pod.String()
	}
	return cmp.Or(r.Location, r.Target)
}

// Sidecars and locations have fields of their own in the record. For any other named target, the
// remediation says it.
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

// Shares reports whether other repairs may run on the Node at the same time. A sidecar's repair
// excludes only the repair of the node itself.
func (r *Record) Shares() bool { return r.Pod != nil }

// Subject is one target on a Node: the node itself, a sidecar or a mesh location, with its record
// and alerts.
type Subject struct {
	// The annotation key of the target's record.
	Key string
	// Unique for its kind on the Node. Empty for the node itself.
	Name   string
	Record *Record
	// The alerts about the target, oldest first. Nil for the node itself, whose alerts are in the
	// Journal.
	Alerts []Alert
}

// Subjects returns the targets of the kind that have a record or an alert: first those with a
// record, then by the age of their alerts. If a Node can have only one record of the kind, alerts
// about a second target wait until the first is done.
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
