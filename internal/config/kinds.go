package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/apiserver"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// kinds are the kinds of target that a policy may be about, beside nodes. A new one is its folder and one line here. One that the
// schema does not describe has, as its key in a policy's target, its name, and there the alert's label that names a target.
var kinds = []*remediations.TargetKind{&apiserver.Kind, &location.Kind, &sidecar.Kind}

// Further is what a configuration may name beside what Drydock comes with.
type Further struct {
	Remediations remediations.Registry
	Kinds        []*remediations.TargetKind
}

func (f Further) none() bool { return len(f.Remediations) == 0 && len(f.Kinds) == 0 }

// remediation is the one of that name; one without a name is not known.
func (f Further) remediation(name string) remediations.Remediation {
	r, _ := f.Remediations.Of(name)
	return r
}

// allKinds are those that a policy may be about, beside nodes.
func (f Further) allKinds() []*remediations.TargetKind { return slices.Concat(kinds, f.Kinds) }

// withKinds puts the further kinds into the schema of a policy's target.
func (f Further) withKinds(schema []byte) []byte {
	const (
		behind = `,
            "": {"$comment": "further kinds'"}`
		unless = `"x-default-unless": ["pod", "location", "apiserver"]`
	)
	var keys, names strings.Builder
	for _, k := range f.Kinds {
		fmt.Fprintf(&keys, `,
            %q: {"$ref": "#/$defs/alertLabel", "description": "The label of the alert that names a %[2]s: the policy is about that %[2]s, and not about a node. Absent: about nodes.", "examples": [%[1]q]}`, k.Kind, k.Kind)
		fmt.Fprintf(&names, ", %q", k.Kind)
	}
	schema = bytes.Replace(schema, []byte(behind), []byte(keys.String()), 1)
	return bytes.Replace(schema, []byte(unless), []byte(strings.TrimSuffix(unless, "]")+names.String()+"]"), 1)
}

// furtherTarget is the kind that the policy's target names by its own key, and the label there; nil: none.
func (b *builder) furtherTarget(at pointer) (kind *remediations.TargetKind, label string) {
	for _, k := range b.further.Kinds {
		if label, _ := b.value(at.To("target", string(k.Kind))).(string); label != "" {
			return k, label
		}
	}
	return nil, ""
}

// ofFurther says that the kind is one of those.
func (f Further) ofFurther(kind remediations.Kind) bool {
	return slices.ContainsFunc(f.Kinds, func(k *remediations.TargetKind) bool { return k.Kind == kind })
}
