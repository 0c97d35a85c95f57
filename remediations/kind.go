package remediations

import (
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

// kinds are those that something is said of.
type kinds []Kind

var (
	ofNodes             = kinds{KindNode}
	ofSidecars          = kinds{KindSidecar}
	ofLocations         = kinds{KindLocation}
	ofNodesAndLocations = kinds{KindNode, KindLocation}
	// ofAll: all whose records Nodes carry.
	ofAll = kinds{KindNode, KindSidecar, KindLocation}
)

func (k kinds) has(kind Kind) bool { return slices.Contains(k, kind) }

// kindOf is the kind of an entry's target: all sidecars of a node are of one.
func kindOf(target string) Kind { kind, _, _ := strings.Cut(target, "-"); return Kind(kind) }

// Kind is what the policy is about.
func (p *Policy) Kind() Kind {
	switch {
	case p.APIServer:
		return KindAPIServer
	case p.Pod != nil:
		return KindSidecar
	case p.Location != "":
		return KindLocation
	}
	return KindNode
}
