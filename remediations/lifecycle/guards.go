package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Finding is why a guard holds a repair.
type Finding struct {
	Message string
	// Until is when the guard stops holding. Zero means unknown.
	Until time.Time
	// Fleetwide means that the cause concerns all nodes, even if the reason usually concerns one.
	Fleetwide bool
	// Concern is the part of the fleet that is held.
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
	binds  kindSet
	// scope is all steps or only disruptive ones.
	scope scope
	// rests are the sources that find reads. If one was not read, the answer is unknown.
	rests Source
	// find returns nil if the guard does not hold the repair. Then passed returns what find
	// compared.
	find   func(*Candidate) *Finding
	passed func(*Candidate) string
}

type scope bool

const (
	whatever   scope = false
	disruptive scope = true
)

// guards has all guards in order: the first one with a finding holds the repair. The table, not the
// guard itself, limits the guard to kinds and steps. RecordMalformed is not here: without a
// readable record there is no candidate, so Decide checks it first.
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

// ofItsKind returns a guard that each kind of target checks itself, by its method Guard.
func ofItsKind(reason remediations.Reason) func(*Candidate) *Finding {
	return func(c *Candidate) *Finding {
		if c.target == nil {
			return nil
		}
		return c.target.Guard(reason, c)
	}
}

// ask returns nil if the guard does not apply or does not hold the candidate.
func (g Guard) ask(c *Candidate) *Finding {
	if !g.binds(c.Kind) || !g.binding(c) {
		return nil
	}
	return g.finds(c)
}

// finds asks the candidate's kind if that kind replaces the guard.
func (g Guard) finds(c *Candidate) *Finding {
	if slices.Contains(c.is.Own, g.Reason) {
		return c.target.Guard(g.Reason, c)
	}
	return g.find(c)
}

func (g Guard) binding(c *Candidate) bool {
	return g.scope == whatever || c.Remediation().Disruptive
}

// HeldBy returns the first guard that holds the candidate. It asks only guards with these reasons,
// or all if reasons is nil.
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
