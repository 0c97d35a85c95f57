// Package admission has the rules for requests that would change a Node or evict a pod from it. The
// webhook calls them. The package is pure, like the core below it: the same request, Nodes,
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

// Reason is the result of a request to change a Node. It is a closed list.
type Reason string

const (
	// ReasonNone: the request is allowed without a message.
	ReasonNone Reason = "None"

	// Always denied.
	ReasonNodeIdentity   Reason = "NodeIdentity"   // a kubelet changes a key of Drydock's domain
	ReasonOwnKey         Reason = "OwnKey"         // a user other than Drydock writes a key that only Drydock may write
	ReasonRightMissing   Reason = "RightMissing"   // a person's key, or the removal of Drydock's own key, by a user without the verb
	ReasonRightUnknown   Reason = "RightUnknown"   // the same, and the API server does not say whether the user has the verb
	ReasonRequestPending Reason = "RequestPending" // a second request while one is pending

	// Denied while a repair is in flight on the node.
	ReasonOwnKeyRemoved   Reason = "OwnKeyRemoved" // also by a user with the verb reset
	ReasonCordon          Reason = "Cordon"
	ReasonTaintRemoved    Reason = "TaintRemoved"
	ReasonNoExecute       Reason = "NoExecute"
	ReasonMeshLeader      Reason = "MeshLeader"
	ReasonDeletion        Reason = "Deletion"
	ReasonOwnerReferences Reason = "OwnerReferences" // the garbage collector could delete the Node
	ReasonRequestInFlight Reason = "RequestInFlight"
	ReasonEviction        Reason = "Eviction"

	// Allowed with a warning.
	ReasonUnreadable        Reason = "Unreadable"        // a key or a value that Drydock will not understand
	ReasonUnknownRepair     Reason = "UnknownRepair"     // an id that is not the id of a repair on the node
	ReasonUncordonExhausted Reason = "UncordonExhausted" // an uncordon that gives the node back to pods, but not to Drydock
	ReasonRequestExhausted  Reason = "RequestExhausted"  // a request that will be refused until a reset
	ReasonRequestIdle       Reason = "RequestIdle"       // a request that will be refused: wrong node, or observe mode
	ReasonRequestQueued     Reason = "RequestQueued"     // a request that must wait for others
	ReasonWouldCollide      Reason = "WouldCollide"      // observe mode: a repair would be in flight now
	ReasonRightUnchecked    Reason = "RightUnchecked"    // an annotation that only stops repairs, with an unknown right
)

// Reasons is the closed list, for metrics and documentation.
var Reasons = []Reason{
	ReasonNone,
	ReasonNodeIdentity, ReasonOwnKey, ReasonRightMissing, ReasonRightUnknown, ReasonRequestPending,
	ReasonOwnKeyRemoved, ReasonCordon, ReasonTaintRemoved, ReasonNoExecute, ReasonMeshLeader, ReasonDeletion, ReasonOwnerReferences, ReasonRequestInFlight, ReasonEviction,
	ReasonUnreadable, ReasonUnknownRepair, ReasonUncordonExhausted, ReasonRequestExhausted, ReasonRequestIdle, ReasonRequestQueued, ReasonWouldCollide, ReasonRightUnchecked,
}

// Change is one request to the API server that would change a Node. The rules do not modify it.
type Change struct {
	// Old is the current Node, nil if the request creates it. New is the changed Node, nil if the
	// request deletes it.
	Old, New *corev1.Node
	User     string
	Groups   []string
	// Drydock: the request is Drydock's own. Exempt: repairs in flight do not bind its user.
	// Driver: its user installs drivers (Drivers).
	Drydock, Exempt, Driver bool
	// May reports whether the user of the request has the verb on repairs of this node. Nil:
	// annotations need no rights.
	May func(verb string) (bool, error)
}

// Exemption names the users that repairs in flight do not bind: their work on a Node must never
// wait, because the cluster's own health depends on it.
type Exemption struct{ Users, Groups []string }

// AlwaysExempt are the users and groups that are exempt in every configuration.
var AlwaysExempt = Exemption{
	Users:  []string{"system:kube-controller-manager", "system:cloud-controller-manager"},
	Groups: []string{"system:serviceaccounts:kube-system"},
}

// Covers reports whether the user is exempt, itself or through one of its groups.
func (e Exemption) Covers(user string, groups []string) bool {
	in := func(e Exemption) bool {
		return slices.Contains(e.Users, user) || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.Groups, g) })
	}
	return in(AlwaysExempt) || in(e)
}

// Decision is the answer to a Change.
type Decision struct {
	Allowed bool
	// Reason is the reason of the denial, or of what only break-glass allowed, or of the first
	// warning.
	Reason Reason
	// Message says why the request is denied and what to do, or what only break-glass allowed.
	Message  string
	Warnings []string
	// BreakGlass: only break-glass allowed the request.
	BreakGlass bool
}

// override is what can override a violation.
type override int

const (
	byNothing            override = iota
	byBreakGlass                  // break-glass on the node, and nothing else
	byBreakGlassOrExempt          // break-glass on the node, or an exempt user
)

// violation is why one rule denies a change.
type violation struct {
	reason   Reason
	override override
	// what is the change, as in "deleting it".
	what, message string
	// warns: the violation concerns a repair of a policy that only observes now, so it denies
	// nothing.
	warns bool
}

// rules are in order. Of several denials the first is returned. The hard core comes first; the
// chart's ValidatingAdmissionPolicy has it, too.
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

// Validate decides whether a change of a Node is allowed. nodes returns the known fleet. It is
// called only if a request may have to wait for other repairs, or if the mesh leader's key changes.
func Validate(c *remediations.Config, ch *Change, nodes func() []*corev1.Node, now time.Time) Decision {
	if ch.Drydock {
		return Decision{Allowed: true, Reason: ReasonNone}
	}
	busy := repairOf(c, ch.Old)
	if ch.changesMeshLeader() && !busy.inFlight() {
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

// ValidateEviction decides whether a pod may be evicted from the node. Old of the change is that
// Node, and New is nil.
func ValidateEviction(c *remediations.Config, ch *Change) Decision {
	busy := repairOf(c, ch.Old)
	if ch.Drydock || !ch.bound(busy) || ch.works(busy) || ch.installs(busy) {
		return Decision{Allowed: true, Reason: ReasonNone}
	}
	return weigh(c, ch, []*violation{busy.collision(ReasonEviction, byBreakGlassOrExempt, "evicting a pod from it")})
}

// weigh overrides the violations that break-glass, the user or the mode allows.
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
	if d.BreakGlass {
		d.Message = strings.Join(overridden, ", ")
	}
	return d
}

func (d *Decision) warn(reason Reason, message string) {
	if d.Reason == ReasonNone {
		d.Reason = reason
	}
	d.Warnings = append(d.Warnings, message)
}

// observes reports whether this installation only observes, so that its actions cannot collide with
// a request. A violation without an override is denied all the same: a record written in observe
// mode would be believed in enforce mode.
func observes(c *remediations.Config) bool {
	return c.Mode != remediations.ModeEnforce && !slices.ContainsFunc(c.Policies, func(p *remediations.Policy) bool { return p.Mode == remediations.ModeEnforce })
}

// ofNode reports whether a node's own identity makes the request.
func (ch *Change) ofNode() bool {
	return strings.HasPrefix(ch.User, "system:node:") || slices.Contains(ch.Groups, "system:nodes")
}
