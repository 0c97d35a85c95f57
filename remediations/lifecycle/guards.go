package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Finding is a guard's word: why not, and until when where that is known.
type Finding struct {
	Message string
	Until   time.Time
	// Fleetwide: the cause is not the node's, though the reason may be.
	Fleetwide bool
	// Pass: the step is passed over where the plan goes on.
	Pass bool
}

func Because(format string, args ...any) *Finding {
	return &Finding{Message: fmt.Sprintf(format, args...)}
}

// Guard is one reason not to repair.
type Guard struct {
	Reason remediations.Reason
	// binds are the kinds of target that it may hold.
	binds kinds
	// scope says which remediations it may hold.
	scope scope
	// rests says what find rests on: where one of these was not seen, nobody knows what the guard would say.
	rests Source
	// find returns nil where it has nothing against the repair.
	find func(*Candidate) *Finding
	// passed says what find saw, where it has nothing against the repair.
	passed func(*Candidate) string
}

// scope is whether a guard speaks of disruption.
type scope bool

const (
	whatever   scope = false
	disruptive scope = true
)

// guards in the order in which they are asked; the first that finds something holds the repair. RecordMalformed comes
// before all of them, in Decide: without a record there is no candidate. The table says which kind of target each binds, and
// whether it binds only what disrupts; no guard asks that itself. Those that speak of people, of alerts and of the node's age are in
// guards_said.go, those of the fleet, of windows and limits in guards_fleet.go, those of other repairs in guards_repairs.go, NotWitnessed
// is in guards_witness.go, and what each says where it lets the repair pass is in guards_passed.go. What a kind adds is its own:
// Target.Guard, and Target.Own where it speaks in the guard's place.
var guards = []Guard{
	{remediations.ReasonExcluded, onNodes, whatever, OnNode, excluded, notExcluded},
	{remediations.ReasonPaused, ofAll, whatever, OnNode, paused, notPaused},
	{remediations.ReasonNodeLeaving, onNodes, whatever, OnNode, nodeLeaving, staying},
	{remediations.ReasonCordonedByOther, onNodes, whatever, OnNode, cordonedByOther, notCordoned},
	{remediations.ReasonAlertUnconfirmed, ofAll, whatever, OnAlerts, confirmedAs(remediations.ReasonAlertUnconfirmed), confirmed},
	{remediations.ReasonBlind, onNodes, whatever, OnAlerts, blind, answered},
	{remediations.ReasonBlind, onNodesButSidecars, whatever, OnLeases, leasesBlind, leasesFresh}, // a sidecar is asked itself
	{remediations.ReasonWritesDenied, onNodes, whatever, OnLedger, writesDenied, saying("the API server takes what Drydock writes on Nodes")},
	{remediations.ReasonStoreWentBack, onNodes, disruptive, OnLedger, storeWentBack, saying("the API server's store did not go back to an older state")},
	{remediations.ReasonSilenced, ofAll, whatever, OnAlerts, confirmedAs(remediations.ReasonSilenced), saying("no silence and no mute time covers the alert")},
	{remediations.ReasonInhibited, ofAll, whatever, OnAlerts, confirmedAs(remediations.ReasonInhibited), saying("no other alert inhibits the alert")},
	{remediations.ReasonAlertResolved, ofAll, whatever, OnAlerts, alertResolved, notResolved},
	{remediations.ReasonNotWitnessed, ofNodes, whatever, OnNode, notWitnessed, witnessed},
	{remediations.ReasonTooYoung, ofNodes, whatever, OnNode, nodeTooYoung, nodeAge},
	{remediations.ReasonTooYoung, ofAll, whatever, OnNode, alertTooYoung, alertAge},
	{remediations.ReasonFleetUnhealthy, ofNodes, disruptive, OnFleet | OnLedger, fleetUnhealthy, fleetHealth},
	{remediations.ReasonOutsideWindow, ofAll, disruptive, OnNode, outsideWindow, insideWindow},
	{remediations.ReasonNodeUnderRepair, ofNodes, whatever, OnFleet | OnLedger, nodeUnderRepair, saying("no other repair is under way on the node")},
	{remediations.ReasonNodeUnderRepair, onNodesBesideNodes, whatever, OnNode, hostUnderRepair, saying("the node itself is not under repair")},
	{remediations.ReasonNodeUnderRepair, onNodesBesideNodes, whatever, OnFleet | OnLedger, ofItsKind(remediations.ReasonNodeUnderRepair), saying("no other repair of the same target is under way")},
	{remediations.ReasonNodeUnderRepair, onNodes, whatever, OnLedger, beingReplaced, saying("no machine of this node is being replaced")},
	{remediations.ReasonCooldown, ofNodes, disruptive, OnNode | OnLedger, cooldown, cooled},
	{remediations.ReasonCooldown, besideNodes, disruptive, OnLedger, ofItsKind(remediations.ReasonCooldown), saying("no repair of the target ended too short a time ago")},
	{remediations.ReasonRepairsSpent, ofNodesAndOfAPIServers, disruptive, OnLedger, repairsSpent, repairsLeft},
	{remediations.ReasonPolicyFailing, onNodesButSidecars, whatever, OnLedger, policyFailing, policyWorks},
	{remediations.ReasonControlPlaneBusy, ofNodes, disruptive, OnFleet | OnLedger, controlPlaneBusy, controlPlaneFree},
	{remediations.ReasonClusterWide, ofNodes, disruptive, OnAlerts | OnFleet | OnLedger, clusterWide, wideEnough},
	{remediations.ReasonAtLimit, ofNodes, disruptive, OnFleet | OnLedger, atLimit, belowLimit},
	{remediations.ReasonAtLimit, onNodesBesideNodes, disruptive, OnFleet | OnLedger, ofItsKind(remediations.ReasonAtLimit), saying("fewer repairs of this kind are under way than the limit")},
	{remediations.ReasonCommonCause, ofNodes, disruptive, OnFleet | OnAlerts, commonCause, noCommonCause},
	{remediations.ReasonAwaitingApproval, onNodesButSidecars, whatever, OnNode, awaitingApproval, approved},
	{remediations.ReasonObserving, ofAll, whatever, OnNode, observing, saying("the mode is enforce")},
}

// Guards are all of them, in the order in which they are asked.
func Guards() []Guard { return slices.Clone(guards) }

func (s *State) guards() []Guard {
	if s.Guards == nil {
		return guards
	}
	return s.Guards
}

// ofItsKind asks the target's kind what it alone has against the repair for the reason.
func ofItsKind(reason remediations.Reason) func(*Candidate) *Finding {
	return func(c *Candidate) *Finding {
		if c.target == nil || c.target.Guard == nil {
			return nil
		}
		return c.target.Guard(reason, c)
	}
}

// ask is what the guard finds against the candidate, if it binds that.
func (g Guard) ask(c *Candidate) *Finding {
	if !g.binds(c.Kind) || !g.binding(c) {
		return nil
	}
	return g.finds(c)
}

// finds is what the guard finds against a candidate that it binds, or the candidate's kind in its place.
func (g Guard) finds(c *Candidate) *Finding {
	if c.target != nil && slices.Contains(c.target.Own, g.Reason) {
		return c.target.Guard(g.Reason, c)
	}
	return g.find(c)
}

// binding says that the guard binds the candidate's step.
func (g Guard) binding(c *Candidate) bool {
	return g.scope == whatever || c.Remediation().Disruptive
}

// HeldBy asks those guards alone that have one of the reasons; nil: all of them.
func (c *Candidate) HeldBy(reasons []remediations.Reason) (remediations.Reason, *Finding) {
	for _, g := range c.guards() {
		if reasons != nil && !slices.Contains(reasons, g.Reason) {
			continue
		}
		if f := g.ask(c); f != nil {
			return g.Reason, f
		}
	}
	return "", nil
}
