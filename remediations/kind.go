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

// Kind is a kind of target: what a policy is about, what a remediation repairs, whose repair a slot or an entry of the history
// is of.
type Kind string

const (
	// KindNode: the node itself.
	KindNode Kind = ""
	// KindSidecar: the sidecar of a pod.
	KindSidecar Kind = "sidecar"
	// KindLocation: a location of the mesh, by the node that leads it.
	KindLocation Kind = "leader"
	// KindAPIServer: the API servers, whose repair no Node carries.
	KindAPIServer Kind = "apiserver"
)

// TargetKind is a kind of target that this installation knows, beside nodes.
type TargetKind struct {
	Kind Kind
	// Name reads out of an alert which target it is about, by the labels that the policy names. An error: it names none.
	Name func(p *Policy, labels map[string]string) (string, error)
	// Unknown is why an alert about one that nobody has is none of ours; empty: MisrouteNoTarget.
	Unknown Misroute
	// Called is what people call one of them, Selects what a policy about them is for; empty: by the kind's name, and nodes.
	Called, Selects string
	// NotAsked says why nobody can ask for their repair on a Node; empty: it depends on the policy alone.
	NotAsked string
	// Served says that this installation has what their repair needs beside its step; nil: it needs nothing.
	Served func(c *Config) bool
}

// kind is what is known of the kind.
func (c *Config) kind(of Kind) TargetKind {
	for _, k := range c.Kinds {
		if k.Kind == of {
			return *k
		}
	}
	return TargetKind{Kind: of}
}

// Called is what people call a target of the kind.
func (c *Config) Called(kind Kind) string { return cmp.Or(c.kind(kind).Called, "a "+string(kind)) }

// Misroute is why an alert is none of ours; its values are those of the metric drydock_alerts_received_total.
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

// Unknown is why an alert about a target of the kind that nobody has is none of ours.
func (c *Config) Unknown(kind Kind) Misroute {
	return cmp.Or(c.kind(kind).Unknown, MisrouteNoTarget)
}

// NameOf is the name of the target that the alert is about by the policy. An error: it names none.
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

// one says that a Node has a record of the kind at most. Such a repair occupies its Node: the Node's phase label says so, and
// admission knows of it.
func (k Kind) one() bool { return k == KindNode || k == KindLocation }

// KeyOf is the key of the record of the kind's target of that name.
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

// kindOfKey is the kind whose records stand under the key; false: it is no such key.
func kindOfKey(key string) (Kind, bool) {
	if key == NodeRepairKey {
		return KindNode, true
	}
	name, many, hash := strings.Cut(strings.TrimPrefix(key, RepairPrefix), "-")
	kind := Kind(name)
	return kind, kind != KindNode && kind.one() == (!hash && many == "")
}

// name is that of the record's target; the node itself has none.
func (r *Record) name() string {
	if r.Pod != nil {
		return r.Pod.String()
	}
	return cmp.Or(r.Location, r.Target)
}

// kind is that of the record's target; of names the kind of one that has no field of its own.
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

// Shares says that the repair and others on its Node do not exclude each other, but for the node's own.
func (r *Record) Shares() bool { return r.Pod != nil }

// Subject is a target that is not the node itself, and that Drydock has something on: alerts that a policy takes, or a repair.
type Subject struct {
	// Key is that of its record, Name tells it from the others of its kind on the Node.
	Key, Name string
	Record    *Record
	// Alerts about it, oldest first.
	Alerts []Alert
}

// Subjects are those of the kind that the journal has something on: the ones under repair first, then by the age of their alerts.
// Of a kind that a Node has one of at most, alerts about another one wait until this one is done with.
func (c *Config) Subjects(kind Kind, j Journal) []Subject {
	var out []Subject
	add := func(key, name string) *Subject {
		i := slices.IndexFunc(out, func(s Subject) bool { return s.Key == key })
		if i < 0 {
			i = len(out)
			out = append(out, Subject{Key: key, Name: name})
		}
		return &out[i]
	}
	if len(j.Records) > 0 { // most Nodes have none, and in a storm each is asked in each pass
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

// Entry is what the history calls it.
func (s *Subject) Entry() string { return strings.TrimPrefix(s.Key, RepairPrefix) }

// KindOf is the kind of an entry's target: all sidecars of a node are of one.
func KindOf(target string) Kind { kind, _, _ := strings.Cut(target, "-"); return Kind(kind) }
