package lifecycle

import "drydock.dev/drydock/remediations"

// kinds reports whether something is true of a kind of target.
type kinds func(remediations.Kind) bool

func ofAll(remediations.Kind) bool { return true }

func ofNodes(k remediations.Kind) bool { return k == remediations.KindNode }

func besideNodes(k remediations.Kind) bool { return k != remediations.KindNode }

// onNodes reports whether Nodes have the records of repairs of the kind, which are decided with a
// ledger and a fleet. Repairs of API servers are not.
func onNodes(k remediations.Kind) bool { return k != remediations.KindAPIServer }

func onNodesButSidecars(k remediations.Kind) bool { return onNodes(k) && k != remediations.KindSidecar }

func onNodesBesideNodes(k remediations.Kind) bool { return onNodes(k) && k != remediations.KindNode }

func ofNodesAndOfAPIServers(k remediations.Kind) bool {
	return k == remediations.KindNode || k == remediations.KindAPIServer
}
