// Package admission has the rules for requests that would change a Node or evict a pod from a node.
// The webhook calls them. The package is pure, like the core below it: the same request, Nodes,
// configuration and time give the same decision.
package admission

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Reason is why a request to change a Node is denied, or allowed with a warning.
type Reason string

const (
	// ReasonNone: the request is allowed without a message.
	ReasonNone Reason = "None"

	// These requests are always denied.
	ReasonNodeIdentity   Reason = "NodeIdentity"   // a kubelet changes a key of Drydock's domain
	ReasonOwnKey         Reason = "OwnKey"         // a user other than Drydock writes a key that only Drydock may write
	ReasonRightMissing   Reason = "RightMissing"   // the user lacks the verb for a person's key, or for removing Drydock's own key
	ReasonRightUnknown   Reason = "RightUnknown"   // the API server does not answer whether the user has that verb
	ReasonRequestPending Reason = "RequestPending" // a second request while one is pending

	// These requests are denied while a repair is in flight on the node.
	ReasonOwnKeyRemoved   Reason = "OwnKeyRemoved" // Drydock's own key is removed, even by a user with the verb reset
	ReasonCordon          Reason = "Cordon"
	ReasonTaintRemoved    Reason = "TaintRemoved"
	ReasonNoExecute       Reason = "NoExecute"
	ReasonMeshLeader      Reason = "MeshLeader"
	ReasonDeletion        Reason = "Deletion"
	ReasonOwnerReferences Reason = "OwnerReferences" // the garbage collector could delete the Node
	ReasonRequestInFlight Reason = "RequestInFlight"
	ReasonEviction        Reason = "Eviction"

	// These requests are allowed with a warning.
	ReasonUnreadable        Reason = "Unreadable"        // a key or a value that Drydock will not understand
	ReasonUnknownRepair     Reason = "UnknownRepair"     // an id that is not the id of a repair on the node
	ReasonUncordonExhausted Reason = "UncordonExhausted" // an uncordon that gives the node back to pods, but not to Drydock
	ReasonRequestExhausted  Reason = "RequestExhausted"  // a request that will be refused until a reset
	ReasonRequestIdle       Reason = "RequestIdle"       // a request that will be refused: wrong node, or observe mode
	ReasonRequestQueued     Reason = "RequestQueued"     // a request that must wait for others
	ReasonWouldCollide      Reason = "WouldCollide"      // observe mode: a repair would be in flight now
	ReasonRightUnchecked    Reason = "RightUnchecked"    // an annotation that only stops repairs, with an unknown right
)

// Reasons are all values of Reason, for metrics and documentation.
var Reasons = []Reason{
	ReasonNone,
	ReasonNodeIdentity, ReasonOwnKey, ReasonRightMissing, ReasonRightUnknown, ReasonRequestPending,
	ReasonOwnKeyRemoved, ReasonCordon, ReasonTaintRemoved, ReasonNoExecute, ReasonMeshLeader, ReasonDeletion, ReasonOwnerReferences, ReasonRequestInFlight, ReasonEviction,
	ReasonUnreadable, ReasonUnknownRepair, ReasonUncordonExhausted, ReasonRequestExhausted, ReasonRequestIdle, ReasonRequestQueued, ReasonWouldCollide, ReasonRightUnchecked,
}

// Change is one request to the API server that would change a Node.
type Change struct {
	// Old is nil if the request creates the Node. New is nil if the request deletes the Node.
	Old, New *corev1.Node
	User     string
	Groups   []string
	// Drydock means that the request is Drydock's own. Exempt users may change the Node even while
	// a repair of it is in flight. Driver means that the user is one of Drivers.
	Drydock, Exempt, Driver bool
	// Whether the requesting user has the RBAC verb on the resource repairs.drydock.dev for this
	// node. If it is nil, annotations need no such right.
	May func(verb string) (bool, error)
}

// Exemption names users whose requests are allowed even while a repair of the Node is in flight.
// The cluster's own health depends on their work on Nodes, so it must never be delayed.
type Exemption struct{ Users, Groups []string }

// AlwaysExempt are the users and groups that are exempt in every configuration.
var AlwaysExempt = Exemption{
	Users:  []string{"system:kube-controller-manager", "system:cloud-controller-manager"},
	Groups: []string{"system:serviceaccounts:kube-system"},
}

// Covers reports whether the user is exempt, by name or through a group.
func (e Exemption) Covers(user string, groups []string) bool {
	in := func(e Exemption) bool {
		return slices.Contains(e.Users, user) || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.Groups, g) })
	}
	return in(AlwaysExempt) || in(e)
}

// Decision is the answer to a Change.
type Decision struct {
	Allowed bool
	// Why the request is denied. If it is allowed, the first violation that only break-glass
	// overrode, or else the first warning.
	Reason Reason
	// Why the request is denied and what to do, or the changes that only break-glass allowed.
	Message  string
	Warnings []string
	// Only break-glass allowed the request.
	BreakGlass bool
}

// What allows a request despite a violation.
type override int

const (
	byNothing            override = iota
	byBreakGlass                  // break-glass on the node, and nothing else
	byBreakGlassOrExempt          // break-glass on the node, or an exempt user
)

type violation struct {
	reason   Reason
	override override
	// what names the change, for example "deleting the node".
	what, message string
	// The violation only causes a warning, because the policy of the repair is in observe mode now.
	warns bool
}

// The first rule that denies a change gives the message. The rules before the empty line are also
// in the chart's ValidatingAdmissionPolicy.
var rules = []func(*Change, *repair) *violation{
	byNodeIdentity,
	ownKeyWritten,
	rightMissing,
	ownKeyRemoved,
	cordonFlipped,
	deleted,
	ownersChanged,

	requestPending,
	taintRemoved,
	noExecuteAdded,
	meshLeaderChanged,
	requestInFlight,
}

// Validate decides whether a change of a Node is allowed. nodes returns all Nodes. It is called
// only if a person requests a repair, which may have to wait for other repairs, or if the
// annotation that chooses the mesh leader changes.
func Validate(c *remediations.Config, ch *Change, nodes func() []*corev1.Node, now time.Time) Decision {
	if ch.Drydock {
		return Decision{Allowed: true, Reason: ReasonNone}
	}
	busy := repairOf(c, ch.Old)
	if ch.changesMeshLeader() {
		busy.mesh = leaderRepairOf(c, ch.Old, nodes())
	}
	var violations []*violation
	for _, rule := range rules {
		if v := rule(ch, busy); v != nil {
			violations = append(violations, v)
		}
	}
	d := weigh(c, ch, violations)
	if !d.Allowed {
		return d
	}
	for _, w := range warnings(c, ch, nodes, now) {
		d.warn(w.reason, w.message)
	}
	return d
}

// ValidateEviction decides whether a pod may be evicted from the node ch.Old. ch.New is nil.
func ValidateEviction(c *remediations.Config, ch *Change) Decision {
	busy := repairOf(c, ch.Old)
	if ch.Drydock || !ch.bound(busy) || ch.works(busy) || ch.installs(busy) {
		return Decision{Allowed: true, Reason: ReasonNone}
	}
	return weigh(c, ch, []*violation{busy.collision(ReasonEviction, byBreakGlassOrExempt, "evicting a pod from the node")})
}

// weigh first drops the violations that break-glass, an exempt user or observe mode overrides.
func weigh(c *remediations.Config, ch *Change, violations []*violation) Decision {
	d := Decision{Allowed: true, Reason: ReasonNone}
	breakGlass := ch.Old != nil && lifecycle.BreakGlassSet(ch.Old)
	var overridden []string
	for _, v := range violations {
		switch {
		case ch.Exempt && v.override == byBreakGlassOrExempt:
		case breakGlass && v.override != byNothing:
			if !v.warns && !observes(c) {
				if overridden = append(overridden, v.what); !d.BreakGlass {
					d.Reason, d.BreakGlass = v.reason, true
				}
			}
		case v.override != byNothing && (v.warns || observes(c)):
			d.warn(v.reason, "in enforce mode this would be denied: "+v.message)
		default:
			return Decision{Reason: v.reason, Message: v.message}
		}
	}
	d.Message = strings.Join(overridden, ", ")
	return d
}

func (d *Decision) warn(reason Reason, message string) {
	if d.Reason == ReasonNone {
		d.Reason = reason
	}
	d.Warnings = append(d.Warnings, message)
}

// Without enforce mode, Drydock changes nothing that a request could collide with, so most
// violations only cause a warning. A violation with byNothing is denied even then: after a switch
// to enforce mode, Drydock would trust the forged record.
func observes(c *remediations.Config) bool {
	return c.Mode != remediations.ModeEnforce && !slices.ContainsFunc(c.Policies, func(p *remediations.Policy) bool { return p.Mode == remediations.ModeEnforce })
}

func (ch *Change) ofNode() bool {
	return strings.HasPrefix(ch.User, "system:node:") || slices.Contains(ch.Groups, "system:nodes")
}
