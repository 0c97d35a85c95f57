package lifecycle

import "drydock.dev/drydock/remediations"

// kindSet is a set of kinds of targets. It reports whether a kind is in the set.
type kindSet func(remediations.Kind) bool

func ofAll(remediations.Kind) bool { return true }

func ofNodes(k remediations.Kind) bool { return k == remediations.KindNode }

func besideNodes(k remediations.Kind) bool { return k != remediations.KindNode }

// onNodes is true for all kinds whose repairs have their records on Nodes: all except API servers.
// Decisions about these kinds use the ledger and the fleet.
func onNodes(k remediations.Kind) bool { return k != remediations.KindAPIServer }

func onNodesButSidecars(k remediations.Kind) bool { return onNodes(k) && k != remediations.KindSidecar }

func onNodesBesideNodes(k remediations.Kind) bool { return onNodes(k) && k != remediations.KindNode }

func ofNodesAndOfAPIServers(k remediations.Kind) bool {
	return k == remediations.KindNode || k == remediations.KindAPIServer
}
