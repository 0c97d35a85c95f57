package remediations

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// TargetKind is what is true of one kind of target, for all that is not about that kind alone.
type TargetKind struct {
	Kind Kind
	// Key is the key of its record on a Node; Many: a Node may have many of the kind, and Key is how their keys begin. Empty:
	// no Node carries its record.
	Key  string
	Many bool
	// Occupies: a repair in flight occupies its Node: the Node's phase label says so, and admission knows of it.
	Occupies bool
	// Shares: repairs of the kind on one Node do not exclude each other, nor those of other kinds but the node's own.
	Shares bool
	// Name reads out of an alert which target it is about, by the labels that the policy names. An error: it names none.
	Name func(p *Policy, labels map[string]string) (string, error)
	// Of is the name of the target that the record is of; empty: the record is not of this kind.
	Of func(r *Record) string
	// Validate says why a record of the kind was not written by Drydock, or has something of the kind and is of another; nil:
	// nothing but what every record must have.
	Validate func(r *Record) error
}

// Kinds holds every kind of target, in the order in which a pass decides about those of one Node. A new one is one file, one line
// here, and the port that the engine is given for it.
var Kinds = []*TargetKind{&nodeKind, &locationKind, &sidecarKind, &apiserverKind}

// KindOf is the kind of that name; nil: there is none.
func KindOf(kind Kind) *TargetKind {
	for _, k := range Kinds {
		if k.Kind == kind {
			return k
		}
	}
	return nil
}

// kindOfKey is the kind whose records stand under the key; nil: none that is known.
func kindOfKey(key string) *TargetKind {
	for _, k := range Kinds {
		if k.Key != "" && (key == k.Key || (k.Many && strings.HasPrefix(key, k.Key))) {
			return k
		}
	}
	return nil
}

// OccupyingKey says that a record under the key has its phase in the label of its Node.
func OccupyingKey(key string) bool {
	k := kindOfKey(key)
	return k != nil && k.Occupies
}

// KeyOf is the key of the record of the target of that name.
func (k *TargetKind) KeyOf(name string) string {
	if !k.Many {
		return k.Key
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s%x", k.Key, sum[:8])
}

// target is the kind of the record's target, and its name; the node itself has none.
func (r *Record) target() (*TargetKind, string) {
	for _, k := range Kinds {
		if k.Of == nil {
			continue
		}
		if name := k.Of(r); name != "" {
			return k, name
		}
	}
	return &nodeKind, ""
}

// nodeKind is the node itself.
var nodeKind = TargetKind{
	Kind: KindNode, Key: NodeRepairKey, Occupies: true,
	Name: func(p *Policy, labels map[string]string) (string, error) {
		if len(p.Labels) != 1 {
			return "", errors.New("the policy says of no label that it names a node")
		}
		name := labels[p.Labels[0]]
		return name, ValidNodeName(name)
	},
}

// apiserverKind are the API servers, all of them: no label names one.
var apiserverKind = TargetKind{Kind: KindAPIServer, Name: func(*Policy, map[string]string) (string, error) { return "", nil }}

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
	k := KindOf(kind)
	var out []Subject
	at := map[string]int{}
	add := func(key, name string) *Subject {
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, Subject{Key: key, Name: name})
		}
		return &out[i]
	}
	records := j.Of(kind)
	for _, key := range slices.Sorted(maps.Keys(records)) {
		add(key, k.Of(records[key])).Record = records[key]
	}
	for _, a := range j.Alerts {
		p := c.Policy(a.Policy)
		if p == nil || p.Kind != kind {
			continue
		}
		if name, err := k.Name(p, a.Labels); err == nil {
			if s := add(k.KeyOf(name), name); s.Name == name {
				s.Alerts = append(s.Alerts, a)
			}
		}
	}
	return out
}

func (s *Subject) causes() []*Alert { return pointers(s.Alerts) }

func (s *Subject) record() *Record { return s.Record }

// entry is what the history calls it.
func (s *Subject) entry() string { return strings.TrimPrefix(s.Key, RepairPrefix) }

// kinds says of which kinds of target something is true.
type kinds func(Kind) bool

func ofAll(Kind) bool           { return true }
func ofNodes(k Kind) bool       { return k == KindNode }
func besideNodes(k Kind) bool   { return k != KindNode }
func notOfSidecars(k Kind) bool { return k != KindSidecar }

// kindOf is the kind of an entry's target: all sidecars of a node are of one.
func kindOf(target string) Kind { kind, _, _ := strings.Cut(target, "-"); return Kind(kind) }

// InFlight says which repair, if any, occupies the node: the webhook asks it before it lets a person in. Sidecar
// repairs occupy nobody's node.
func InFlight(n *corev1.Node) *Record {
	for _, k := range Kinds {
		v, ok := n.Annotations[k.Key]
		if !ok || !k.Occupies {
			continue
		}
		if r, err := DecodeRecord(v); err == nil && r.Phase.InFlight() {
			return r
		}
	}
	return nil
}

// LabelFor is the value of PhaseLabel on a Node with these annotations: of the repairs that occupy it, the phase that a person
// must know of first. Empty: no label.
func LabelFor(annotations map[string]string) Phase {
	var label Phase
	rank := map[Phase]int{Pending: 1, Exhausted: 2, Verifying: 3, Acting: 4}
	for _, k := range Kinds {
		v, ok := annotations[k.Key]
		if !ok || !k.Occupies {
			continue
		}
		if r, err := DecodeRecord(v); err == nil && rank[r.Phase] > rank[label] {
			label = r.Phase
		}
	}
	return label
}
