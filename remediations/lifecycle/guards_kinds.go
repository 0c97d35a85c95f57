package lifecycle

import "drydock.dev/drydock/remediations"

type kindSet func(remediations.Kind) bool

func ofAll(remediations.Kind) bool { return true }

func ofNodes(k remediations.Kind) bool { return k == remediations.KindNode }

func besideNodes(k remediations.Kind) bool { return k != remediations.KindNode }

// onNodes is true for all kinds except API servers, whose repairs have no record on a Node.
// Decisions about the other kinds use the ledger and the fleet.
func onNodes(k remediations.Kind) bool { return k != remediations.KindAPIServer }

func onNodesButSidecars(k remediations.Kind) bool { return onNodes(k) && k != remediations.KindSidecar }

func onNodesBesideNodes(k remediations.Kind) bool { return onNodes(k) && k != remediations.KindNode }

func ofNodesAndOfAPIServers(k remediations.Kind) bool {
	return k == remediations.KindNode || k == remediations.KindAPIServer
}
