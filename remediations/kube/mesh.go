package kube

import (
	"slices"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// The time when Kilo's agent on the node last wrote. It changes twice a minute on each node.
const meshSeen = election.LastSeenKey

func ofMesh(key string) bool { return slices.Contains(election.Keys, key) }

// sameButSeen reports whether the annotations are equal apart from meshSeen.
func sameButSeen(a, b map[string]string) bool {
	counted := func(m map[string]string) int {
		if _, seen := m[meshSeen]; seen {
			return len(m) - 1
		}
		return len(m)
	}
	if counted(a) != counted(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; k != meshSeen && (!ok || v != w) {
			return false
		}
	}
	return true
}
