package kilo

import (
	"fmt"
	"slices"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// granularity is the only granularity of Kilo with a leader for each location that can be moved to
// another node.
const granularity = "location"

// held returns why the leader of the location must not be moved, whatever node would succeed;
// empty: nothing forbids it. A person must correct the reason, so it names the node and the key.
// misconfigured: the nodes' keys are the reason, and not only that there is no other node.
func (v view) held(location, topologyLabel string) (why string, misconfigured bool) {
	for _, rule := range []func(view, string, string) string{granularities, placeless, unreadable} {
		if why := rule(v, location, topologyLabel); why != "" {
			return why, true
		}
	}
	return alone(v, location), false
}

// granularities concern the whole mesh: if its agents disagree, they do not see the same leaders.
func granularities(v view, _, _ string) string {
	first := map[string]string{}
	var all []string
	for _, k := range v {
		if k.notReady != "" {
			continue
		}
		if _, known := first[k.Granularity]; !known {
			first[k.Granularity] = k.Name
			all = append(all, k.Granularity)
		}
	}
	i := slices.IndexFunc(all, func(g string) bool { return g != granularity })
	switch {
	case i < 0:
		return ""
	case all[i] == "":
		return fmt.Sprintf("Kilo's agent of node %s does not say its granularity (%s); leaders are moved only where it is %s", first[""], election.GranularityKey, granularity)
	case len(all) > 1:
		a, b := all[0], all[1]
		return fmt.Sprintf("there are two topologies in the cluster: %s of node %s is %q, of node %s %q; let all of Kilo's agents have one --mesh-granularity",
			election.GranularityKey, first[a], clip(a), first[b], clip(b))
	}
	return fmt.Sprintf("%s of node %s is %q: leaders are moved only where it is %s", election.GranularityKey, first[all[i]], clip(all[i]), granularity)
}

// placeless nodes form a location without a name; whether that is intended is unknown.
func placeless(v view, _, topologyLabel string) string {
	for _, k := range v {
		if k.notReady == "" && k.Location == "" {
			return fmt.Sprintf("node %s is in no location: it lacks both the label %s and the annotation %s", k.Name, topologyLabel, election.LocationKey)
		}
	}
	return ""
}

// unreadable finds annotations in the location that cannot be read: their intended value could
// change the leader.
func unreadable(v view, location, _ string) string {
	members, others := v.of(location)
	for _, k := range slices.Concat(members, others) {
		if k.Malformed != "" {
			return fmt.Sprintf("the annotation %s of node %s cannot be read; correct or remove it", k.Malformed, k.Name)
		}
	}
	return ""
}

func alone(v view, location string) string {
	members, others := v.of(location)
	if len(members) != 1 {
		return ""
	}
	why := fmt.Sprintf("location %q has no node but %s that Kilo counts, so no other node could lead instead", clip(location), members[0].Name)
	var of []string
	for _, k := range others {
		of = append(of, k.Name+": "+k.absent())
	}
	if len(of) > 0 {
		why += "; " + named(of, "; ")
	}
	return why
}

// absent returns why the node does not count as a member of its declared location.
func (k member) absent() string {
	if k.notReady != "" {
		return k.notReady
	}
	return "it has no internal address (" + election.InternalIPKey + "), and is a location of its own"
}
