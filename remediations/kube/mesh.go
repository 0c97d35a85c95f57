package kube

import "slices"

// meshSeen is when a node's Kilo agent last wrote. It changes twice a minute on each node.
const meshSeen = "kilo.squat.ai/last-seen"

// meshKeys are Kilo's annotations by which it chooses the leader of a location; remediations/providers/kilo/election reads them.
var meshKeys = []string{
	"kilo.squat.ai/endpoint", "kilo.squat.ai/force-endpoint", "kilo.squat.ai/force-internal-ip", "kilo.squat.ai/granularity",
	"kilo.squat.ai/internal-ip", "kilo.squat.ai/key", meshSeen, "kilo.squat.ai/leader", "kilo.squat.ai/location",
	"kilo.squat.ai/persistent-keepalive", "kilo.squat.ai/wireguard-ip",
}

func ofMesh(key string) bool { return slices.Contains(meshKeys, key) }

// sameButSeen says that the annotations tell the same, whenever the node's Kilo agent wrote.
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
