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

// Kind is a kind of target. Policies, remediations, slots and entries of the history each have one.
type Kind string

const (
	// KindNode: the node itself.
	KindNode Kind = ""
	// KindSidecar: the sidecar of a pod.
	KindSidecar Kind = "sidecar"
	// KindLocation: a location of the mesh, identified by the node that leads it.
	KindLocation Kind = "leader"
	// KindAPIServer: the API servers. No Node has the record of their repair.
	KindAPIServer Kind = "apiserver"
)

// TargetKind is a kind of target that this installation supports, beside nodes.
type TargetKind struct {
	Kind Kind
	// Name returns the name of the alert's target, from the labels that the policy lists. It
	// returns an error if they name no target.
	Name func(p *Policy, labels map[string]string) (string, error)
	// Unknown is the result for an alert whose target does not exist; empty: MisrouteNoTarget.
	Unknown Misroute
	// Called is the name of one target in messages; empty: the kind's name. Selects is what a
	// policy about such targets is for; empty: nodes.
	Called, Selects string
	// NotAsked is why a person cannot request such a repair on a Node; empty: only the policy
	// decides.
	NotAsked string
	// Served reports whether this installation has what the repair needs beside its step; nil:
	// nothing else is needed.
	Served func(c *Config) bool
}

// kind returns the TargetKind of the kind.
func (c *Config) kind(of Kind) TargetKind {
	for _, k := range c.Kinds {
		if k.Kind == of {
			return *k
		}
	}
	return TargetKind{Kind: of}
}

// Called returns the name of one target of the kind in messages.
func (c *Config) Called(kind Kind) string { return cmp.Or(c.kind(kind).Called, "a "+string(kind)) }

// Misroute is why an alert is not Drydock's. Its values are label values of the metric
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

// Unknown returns the Misroute for an alert whose target, of this kind, does not exist.
func (c *Config) Unknown(kind Kind) Misroute {
	return cmp.Or(c.kind(kind).Unknown, MisrouteNoTarget)
}

// NameOf returns the name of the alert's target according to the policy. It returns an error if the
// alert names no target.
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

// one reports whether a Node has at most one record of the kind. Such a repair occupies its Node:
// the Node's phase label shows it, and the admission webhook checks it.
func (k Kind) one() bool { return k == KindNode || k == KindLocation }

// KeyOf returns the key of the record of the target with that kind and name.
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

// kindOfKey returns the kind of the records under the key; false: the key is not one of a record.
func kindOfKey(key string) (Kind, bool) {
	if key == NodeRepairKey {
		return KindNode, true
	}
	name, _, hash := strings.Cut(strings.TrimPrefix(key, RepairPrefix), "-")
	kind := Kind(name)
	return kind, kind != KindNode && kind.one() == !hash
}

// name returns the name of the record's target; the node itself has none.
func (r *Record) name() string {
	if r.Pod != nil {
		return r.Pod.String()
	}
	return cmp.Or(r.Location, r.Target)
}

// kind returns the kind of the record's target. For a kind without a field of its own, the
// remediation `of` gives the kind.
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

// Shares reports whether other repairs may run on the Node at the same time. Only the node's own
// repair excludes it.
func (r *Record) Shares() bool { return r.Pod != nil }

// Subject is a target on a Node: the node itself, or one that has a repair or alerts that a policy
// takes.
type Subject struct {
	// Key is the key of the target's record. Name distinguishes the target from others of its kind
	// on the Node.
	Key, Name string
	Record    *Record
	// Alerts are the target's alerts, oldest first.
	Alerts []Alert
}

// Subjects returns the targets of the kind that the journal has records or alerts of. Those under
// repair come first, then the others by the age of their alerts. If a Node can have only one target
// of the kind, alerts about another target wait.
func (c *Config) Subjects(kind Kind, j Journal) []Subject {
	if kind == KindNode { // each node is a target, also without a record and without an alert
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
	if len(j.Records) > 0 { // most Nodes have none, and in a storm each pass calls this for each Node
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

// Entry returns the target's name in history entries.
func (s *Subject) Entry() string { return strings.TrimPrefix(s.Key, RepairPrefix) }

// KindOf returns the kind of a history entry's target. All sidecars of a node are of one kind.
func KindOf(target string) Kind { kind, _, _ := strings.Cut(target, "-"); return Kind(kind) }
