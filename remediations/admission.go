package remediations

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// MeshLeaderKey is the annotation by which Kilo's users choose a location's leader. Its presence alone counts.
const MeshLeaderKey = "kilo.squat.ai/leader"

// AdmissionReason is what a request to change a Node comes to: a closed list.
type AdmissionReason string

const (
	// NothingAgainst: the request is let through without a word.
	NothingAgainst AdmissionReason = "None"

	// Always denied.
	NodeIdentity   AdmissionReason = "NodeIdentity"   // a kubelet changes a key of Drydock's domain
	OwnKey         AdmissionReason = "OwnKey"         // somebody writes what only Drydock may write
	RightMissing   AdmissionReason = "RightMissing"   // a word that asks for a right which whoever says it has not
	RightUnknown   AdmissionReason = "RightUnknown"   // the same, and the API server does not say who has it
	RequestPending AdmissionReason = "RequestPending" // a second request while one is pending

	// Denied while a repair is in flight on the node.
	OwnKeyRemoved   AdmissionReason = "OwnKeyRemoved"
	Cordon          AdmissionReason = "Cordon"
	TaintRemoved    AdmissionReason = "TaintRemoved"
	NoExecute       AdmissionReason = "NoExecute"
	MeshLeader      AdmissionReason = "MeshLeader"
	Deletion        AdmissionReason = "Deletion"
	RequestInFlight AdmissionReason = "RequestInFlight"
	Eviction        AdmissionReason = "Eviction"

	// Let through with a warning.
	Unreadable       AdmissionReason = "Unreadable"       // a key or a value that Drydock will not understand
	UnknownRepair    AdmissionReason = "UnknownRepair"    // an id of no repair on the node
	RequestExhausted AdmissionReason = "RequestExhausted" // a request that will be refused until a reset
	RequestIdle      AdmissionReason = "RequestIdle"      // a request that will be refused: wrong node, or observe mode
	RequestQueued    AdmissionReason = "RequestQueued"    // a request that must wait for others
	WouldCollide     AdmissionReason = "WouldCollide"     // observe mode: a repair would be in flight now
	RightUnchecked   AdmissionReason = "RightUnchecked"   // a word that only stops, and the API server does not say who has the right
)

// AdmissionReasons is the closed list, for metrics and docs.
var AdmissionReasons = []AdmissionReason{
	NothingAgainst, NodeIdentity, OwnKey, RightMissing, RightUnknown, RequestPending, OwnKeyRemoved, Cordon, TaintRemoved, NoExecute, MeshLeader,
	Deletion, RequestInFlight, Eviction, Unreadable, UnknownRepair, RequestExhausted, RequestIdle, RequestQueued, WouldCollide, RightUnchecked,
}

// Change is one request to the API server that would change a Node. It is never changed itself.
type Change struct {
	// Old is the Node as it is, nil where it is being made; New is the Node as it would be, nil where it is being deleted.
	Old, New *corev1.Node
	User     string
	Groups   []string
	// Drydock: the request is Drydock's own. Exempt: it is of somebody whom repairs in flight do not bind.
	Drydock, Exempt bool
	// May says whether whoever makes the request has the verb on repairs of this node. Nil: words ask for no rights.
	May func(verb string) (bool, error)
}

// Exemption names whom repairs in flight do not bind: those whose work on a Node must never wait, because the cluster's
// own health hangs on it.
type Exemption struct{ Users, Groups []string }

// AlwaysExempt are those that no configuration needs to name.
var AlwaysExempt = Exemption{
	Users:  []string{"system:kube-controller-manager", "system:cloud-controller-manager"},
	Groups: []string{"system:serviceaccounts:kube-system"},
}

// Covers says whether the user is exempt, by itself or by one of its groups.
func (e Exemption) Covers(user string, groups []string) bool {
	in := func(e Exemption) bool {
		return slices.Contains(e.Users, user) || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.Groups, g) })
	}
	return in(AlwaysExempt) || in(e)
}

// Verdict is the answer to a Change.
type Verdict struct {
	Allowed bool
	// Reason is that of the denial, else that of what the broken glass let through, else that of the first warning.
	Reason AdmissionReason
	// Message says why it is denied and what to do, or what the broken glass let through.
	Message  string
	Warnings []string
	// Glass: only the broken glass let the request through.
	Glass bool
}

// lift says what sets an objection aside.
type lift int

const (
	byNothing       lift = iota
	byGlass              // the broken glass alone
	byGlassOrExempt      // the broken glass, or who asks
)

// objection is what one rule has against a change.
type objection struct {
	reason AdmissionReason
	lift   lift
	// what is the change, as in "deleting it".
	what, message string
	// warns: it is about a repair of a policy that only observes now, which denies nothing.
	warns bool
}

// admissionRules in the order in which they are asked; of several denials the first is told. The hard core, which the
// ValidatingAdmissionPolicy of the chart has too, comes first.
var admissionRules = []func(*Change, *occupation) *objection{
	byNodeIdentity,
	ownKeyWritten,
	rightMissing,
	ownKeyRemoved,
	cordonFlipped,
	deleted,

	requestPending,
	taintRemoved,
	noExecuteAdded,
	meshLeaderChanged,
	requestInFlight,
}

// Judge says whether a change of a Node may be made. nodes are the fleet as it is known, asked for only where a request
// must be told what it will wait for, or the mesh's leader's key is changed.
func (c *Config) Judge(ch *Change, nodes func() []*corev1.Node, now time.Time) Verdict {
	v := Verdict{Allowed: true, Reason: NothingAgainst}
	if ch.Drydock {
		return v
	}
	busy := c.occupationOf(ch.Old)
	if ch.changesMeshLeader() && !busy.inFlight() {
		busy.mesh = c.leaderRepairOf(ch.Old, nodes())
	}
	var objections []*objection
	for _, rule := range admissionRules {
		if o := rule(ch, busy); o != nil {
			objections = append(objections, o)
		}
	}
	v = c.weigh(ch, objections)
	if !v.Allowed {
		return v
	}
	for _, w := range c.remarks(ch, nodes, now) {
		v.warn(w.reason, w.message)
	}
	return v
}

// weigh sets aside what the broken glass, the asker or the mode lets through.
func (c *Config) weigh(ch *Change, objections []*objection) Verdict {
	v := Verdict{Allowed: true, Reason: NothingAgainst}
	glass := ch.Old != nil && GlassBroken(ch.Old)
	var let []string
	for _, o := range objections {
		switch {
		case ch.Exempt && o.lift == byGlassOrExempt:
		case glass && o.lift != byNothing:
			if !o.warns && !c.observes() {
				if let = append(let, o.what); !v.Glass {
					v.Reason, v.Glass = o.reason, true
				}
			}
		case o.lift != byNothing && (o.warns || c.observes()):
			v.warn(o.reason, "in enforce mode this would be denied: "+o.message)
		default:
			return Verdict{Reason: o.reason, Message: o.message}
		}
	}
	if v.Glass {
		v.Message = strings.Join(let, ", ")
	}
	return v
}

func (v *Verdict) warn(reason AdmissionReason, message string) {
	if v.Reason == NothingAgainst {
		v.Reason = reason
	}
	v.Warnings = append(v.Warnings, message)
}

// JudgeEviction says whether a pod may be evicted from the node; Old of the change is that Node, and New is nil.
func (c *Config) JudgeEviction(ch *Change) Verdict {
	if ch.Drydock {
		return Verdict{Allowed: true, Reason: NothingAgainst}
	}
	busy := c.occupationOf(ch.Old)
	if !ch.bound(busy) {
		return Verdict{Allowed: true, Reason: NothingAgainst}
	}
	return c.weigh(ch, []*objection{busy.objects(Eviction, byGlassOrExempt, "evicting a pod from it")})
}

// GlassBroken says whether a person set drydock.dev/break-glass on the node, whatever it says.
func GlassBroken(n *corev1.Node) bool { _, ok := n.Annotations[BreakGlassKey]; return ok }

// observes: nothing that this installation does could collide with anybody. What nothing sets aside is denied all the same: a
// record that was written while Drydock observes would be believed when it enforces.
func (c *Config) observes() bool {
	return c.Mode != ModeEnforce && !slices.ContainsFunc(c.Policies, func(p *Policy) bool { return p.Mode == ModeEnforce })
}

// ofNode: a node's own identity makes the request.
func (ch *Change) ofNode() bool {
	return strings.HasPrefix(ch.User, "system:node:") || slices.Contains(ch.Groups, "system:nodes")
}
