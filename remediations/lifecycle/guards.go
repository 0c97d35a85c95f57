package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Finding is a guard's objection to a repair.
type Finding struct {
	Message string
	// Until is when the guard stops holding. Zero means unknown.
	Until time.Time
	// Fleetwide reports that the cause concerns all nodes, even if the reason usually concerns one.
	Fleetwide bool
	// Concern is the part of the fleet that a fleet-wide finding affects.
	Concern remediations.Concern
	// Pass is true if the plan may skip this step and continue with another one.
	Pass bool
}

func Because(format string, args ...any) *Finding {
	return &Finding{Message: fmt.Sprintf(format, args...)}
}

// Guard is one check that can hold a repair.
type Guard struct {
	Reason remediations.Reason
	// binds reports whether the guard applies to a kind of target.
	binds kindSet
	// scope says whether the guard applies to all steps or only to disruptive ones.
	scope scope
	// rests are the sources that the function find reads. If one of them was not read, the guard's
	// answer is unknown.
	rests Source
	// find returns the guard's objection to the repair, or nil if there is none.
	find func(*Candidate) *Finding
	// passed returns a message with the facts that find compared, for a repair that the guard does
	// not hold.
	passed func(*Candidate) string
}

// scope is the set of steps that a guard applies to: all steps, or only disruptive ones.
type scope bool

const (
	whatever   scope = false
	disruptive scope = true
)

// guards has all guards in order. The first guard with a finding holds the repair. The table also
// has the kinds of target that each guard applies to, and whether it applies only to disruptive
// steps. The guards do not check this themselves. The reason RecordMalformed is not here: without a
// readable record there is no candidate, so Decide checks it first.
//
// The guards about people are in guards_people.go, and those about alerts and the node's age in
// guards_alert.go. Those about the fleet, windows and limits are in guards_fleet.go, and those
// about other repairs in guards_repairs.go. NotWitnessed is in guards_witness.go. The messages for
// repairs that a guard does not hold are in guards_passed.go.
//
// A kind of target can replace a guard. It names the guard's reason in Description.Own, and its
// method Guard is then called in place of the guard.
var guards = []Guard{
	{remediations.ReasonExcluded, onNodes, whatever, OnNode, excluded, notExcluded},
	{remediations.ReasonPaused, ofAll, whatever, OnNode, paused, notPaused},
	{remediations.ReasonNodeLeaving, onNodes, whatever, OnNode, nodeLeaving, staying},
	{remediations.ReasonCordonedByOther, onNodes, whatever, OnNode, cordonedByOther, notCordoned},
	{remediations.ReasonAlertUnconfirmed, ofAll, whatever, OnAlerts, confirmedAs(remediations.ReasonAlertUnconfirmed), confirmed},
	{remediations.ReasonBlind, onNodes, whatever, OnAlerts, blind, answered},
	{remediations.ReasonBlind, onNodesButSidecars, whatever, OnLeases, leasesBlind, leasesFresh}, // not for sidecars: Drydock asks the sidecar itself
	{remediations.ReasonWritesDenied, onNodes, whatever, OnLedger, writesDenied, saying("the API server accepts Drydock's writes on Nodes")},
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
	{remediations.ReasonNodeUnderRepair, onNodes, whatever, OnLedger, beingReplaced, saying("this node's machine is not being replaced")},
	{remediations.ReasonCooldown, ofNodes, disruptive, OnNode | OnLedger, cooldown, cooled},
	{remediations.ReasonCooldown, besideNodes, disruptive, OnLedger, ofItsKind(remediations.ReasonCooldown), saying("the cooldown of the target's last repair has ended")},
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

// ofItsKind returns the find function of a guard that each kind of target checks itself. That
// function calls the target's method Guard for the reason.
func ofItsKind(reason remediations.Reason) func(*Candidate) *Finding {
	return func(c *Candidate) *Finding {
		if c.target == nil {
			return nil
		}
		return c.target.Guard(reason, c)
	}
}

// ask returns the guard's finding against the candidate, or nil if the guard does not apply to it.
func (g Guard) ask(c *Candidate) *Finding {
	if !g.binds(c.Kind) || !g.binding(c) {
		return nil
	}
	return g.finds(c)
}

// finds returns the finding against a candidate that the guard applies to. If the candidate's kind
// replaces the guard, the finding is the kind's own.
func (g Guard) finds(c *Candidate) *Finding {
	if slices.Contains(c.is.Own, g.Reason) {
		return c.target.Guard(g.Reason, c)
	}
	return g.find(c)
}

// binding reports whether the guard applies to the candidate's step.
func (g Guard) binding(c *Candidate) bool {
	return g.scope == whatever || c.Remediation().Disruptive
}

// HeldBy returns the reason and finding of the first guard that holds the candidate. It asks only
// the guards with one of the reasons, or all guards if reasons is nil.
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
