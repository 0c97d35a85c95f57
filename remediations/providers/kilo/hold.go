package kilo

import (
	"fmt"
	"slices"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// Only with this mesh granularity of Kilo does a location have a leader that can be moved to
// another node.
const granularity = "location"

// held returns "" if nothing forbids a move. A person must remove the obstacle, so the reason names
// the node and the annotation. misconfigured is false if the only reason is that the location has
// no other node.
func (v view) held(location, topologyLabel string) (why string, misconfigured bool) {
	for _, rule := range []func(view, string, string) string{granularities, placeless, unreadable} {
		if why := rule(v, location, topologyLabel); why != "" {
			return why, true
		}
	}
	return alone(v, location), false
}

// granularities checks all nodes: agents with different granularities do not agree on the leaders.
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
		return fmt.Sprintf("Kilo's agent on node %s reports no granularity (%s); Drydock moves leaders only with granularity %s", first[""], election.GranularityKey, granularity)
	case len(all) > 1:
		a, b := all[0], all[1]
		return fmt.Sprintf("Kilo's agents have different granularities: %s of node %s is %q, of node %s %q; give all agents the same --mesh-granularity",
			election.GranularityKey, first[a], clip(a), first[b], clip(b))
	}
	return fmt.Sprintf("%s of node %s is %q: Drydock moves leaders only with granularity %s", election.GranularityKey, first[all[i]], clip(all[i]), granularity)
}

// Kilo treats the nodes without a location as one location without a name, which may not be
// intended.
func placeless(v view, _, topologyLabel string) string {
	for _, k := range v {
		if k.notReady == "" && k.Location == "" {
			return fmt.Sprintf("node %s is in no location: it has neither the label %s nor the annotation %s", k.Name, topologyLabel, election.LocationKey)
		}
	}
	return ""
}

// The value that a person intended in place of an invalid one could change the leader.
func unreadable(v view, location, _ string) string {
	members, others := v.of(location)
	for _, k := range slices.Concat(members, others) {
		if k.Malformed != "" {
			return fmt.Sprintf("the annotation %s of node %s is invalid; correct or remove it", k.Malformed, k.Name)
		}
	}
	return ""
}

func alone(v view, location string) string {
	members, others := v.of(location)
	if len(members) != 1 {
		return ""
	}
	why := fmt.Sprintf("Kilo counts only node %[2]s in location %[1]q, so no other node could lead instead", clip(location), members[0].Name)
	var of []string
	for _, k := range others {
		of = append(of, k.Name+": "+k.absent())
	}
	if len(of) > 0 {
		why += "; " + named(of, "; ")
	}
	return why
}

func (k member) absent() string {
	if k.notReady != "" {
		return k.notReady
	}
	return "it has no internal address (" + election.InternalIPKey + "), so Kilo treats it as a location of its own"
}
