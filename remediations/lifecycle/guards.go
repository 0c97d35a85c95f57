package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Finding is what a guard has against a repair, and until when, if known.
type Finding struct {
	Message string
	Until   time.Time
	// Fleetwide: the cause is not the node's own, even if the reason usually is.
	Fleetwide bool
	// Pass: the step is passed over if the plan has another step.
	Pass bool
}

func Because(format string, args ...any) *Finding {
	return &Finding{Message: fmt.Sprintf(format, args...)}
}

// Guard is one reason not to repair.
type Guard struct {
	Reason remediations.Reason
	// binds are the kinds of target that the guard may hold.
	binds kinds
	// scope is the set of remediations that the guard may hold.
	scope scope
	// rests are the sources that find reads. If one of them was not read, the guard's answer is
	// unknown.
	rests Source
	// find returns nil if the guard has nothing against the repair.
	find func(*Candidate) *Finding
	// passed describes what find saw when it has nothing against the repair.
	passed func(*Candidate) string
}

// scope is whether a guard holds only disruptive remediations.
type scope bool

const (
	whatever   scope = false
	disruptive scope = true
)

// guards are in order. The first that finds something holds the repair. RecordMalformed comes
// before all of them, in Decide: without a record there is no candidate. The table says which kinds
// of target each guard binds, and whether it binds only disruptive steps; no guard checks this
// itself.
//
// The guards about people are in guards_people.go, and those about alerts and the node's age in
// guards_alert.go. Those about the fleet, windows and limits are in guards_fleet.go, and those
// about other repairs in guards_repairs.go. NotWitnessed is in guards_witness.go. guards_passed.go
// has what each guard says when it lets a repair pass.
//
// A kind adds its own checks with Target.Guard, and replaces a guard with Target.Own.
var guards = []Guard{
	{remediations.ReasonExcluded, onNodes, whatever, OnNode, excluded, notExcluded},
	{remediations.ReasonPaused, ofAll, whatever, OnNode, paused, notPaused},
	{remediations.ReasonNodeLeaving, onNodes, whatever, OnNode, nodeLeaving, staying},
	{remediations.ReasonCordonedByOther, onNodes, whatever, OnNode, cordonedByOther, notCordoned},
	{remediations.ReasonAlertUnconfirmed, ofAll, whatever, OnAlerts, confirmedAs(remediations.ReasonAlertUnconfirmed), confirmed},
	{remediations.ReasonBlind, onNodes, whatever, OnAlerts, blind, answered},
	{remediations.ReasonBlind, onNodesButSidecars, whatever, OnLeases, leasesBlind, leasesFresh}, // a sidecar is asked directly
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

// Guards returns all guards, in order.
func Guards() []Guard { return slices.Clone(guards) }

func (s *State) guards() []Guard {
	if s.Guards == nil {
		return guards
	}
	return s.Guards
}

// ofItsKind returns a guard that asks the target's kind what it has against the repair for the
// reason.
func ofItsKind(reason remediations.Reason) func(*Candidate) *Finding {
	return func(c *Candidate) *Finding {
		if c.target == nil {
			return nil
		}
		return c.target.Guard(reason, c)
	}
}

// ask returns the guard's finding against the candidate, if the guard binds it.
func (g Guard) ask(c *Candidate) *Finding {
	if !g.binds(c.Kind) || !g.binding(c) {
		return nil
	}
	return g.finds(c)
}

// finds returns the finding against a candidate that the guard binds. The candidate's kind answers
// if it replaces the guard.
func (g Guard) finds(c *Candidate) *Finding {
	if slices.Contains(c.is.Own, g.Reason) {
		return c.target.Guard(g.Reason, c)
	}
	return g.find(c)
}

// binding reports whether the guard binds the candidate's step.
func (g Guard) binding(c *Candidate) bool {
	return g.scope == whatever || c.Remediation().Disruptive
}

// HeldBy asks only the guards with one of the reasons; nil: all guards.
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
