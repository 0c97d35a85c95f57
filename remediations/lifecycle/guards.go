package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
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
// guards_said.go, NotWitnessed is in witness.go, and what each says where it lets the repair pass is in guards_passed.go. What a kind
// adds is its own: Target.Guard, and Target.Own where it speaks in the guard's place.
var guards = []Guard{
	{remediations.ReasonExcluded, onNodes, whatever, OnNode, excluded, notExcluded},
	{remediations.Paused, ofAll, whatever, OnNode, paused, notPaused},
	{remediations.NodeLeaving, onNodes, whatever, OnNode, nodeLeaving, staying},
	{remediations.CordonedByOther, onNodes, whatever, OnNode, cordonedByOther, notCordoned},
	{remediations.AlertUnconfirmed, ofAll, whatever, OnAlerts, confirmedAs(remediations.AlertUnconfirmed), confirmed},
	{remediations.Blind, onNodes, whatever, OnAlerts, blind, answered},
	{remediations.Blind, onNodesButSidecars, whatever, OnLeases, leasesBlind, leasesFresh}, // a sidecar is asked itself
	{remediations.Silenced, ofAll, whatever, OnAlerts, confirmedAs(remediations.Silenced), saying("no silence and no mute time covers the alert")},
	{remediations.Inhibited, ofAll, whatever, OnAlerts, confirmedAs(remediations.Inhibited), saying("no other alert inhibits the alert")},
	{remediations.AlertResolved, ofAll, whatever, OnAlerts, alertResolved, notResolved},
	{remediations.NotWitnessed, ofNodes, whatever, OnNode, notWitnessed, witnessed},
	{remediations.TooYoung, ofNodes, whatever, OnNode, nodeTooYoung, nodeAge},
	{remediations.TooYoung, ofAll, whatever, OnNode, alertTooYoung, alertAge},
	{remediations.FleetUnhealthy, ofNodes, disruptive, OnFleet | OnLedger, fleetUnhealthy, fleetHealth},
	{remediations.OutsideWindow, ofAll, disruptive, OnNode, outsideWindow, insideWindow},
	{remediations.NodeUnderRepair, ofNodes, whatever, OnFleet | OnLedger, nodeUnderRepair, saying("no other repair is under way on the node")},
	{remediations.NodeUnderRepair, onNodesBesideNodes, whatever, OnNode, hostUnderRepair, saying("the node itself is not under repair")},
	{remediations.NodeUnderRepair, onNodesBesideNodes, whatever, OnFleet | OnLedger, ofItsKind(remediations.NodeUnderRepair), saying("no other repair of the same target is under way")},
	{remediations.NodeUnderRepair, onNodes, whatever, OnLedger, beingReplaced, saying("no machine of this node is being replaced")},
	{remediations.Cooldown, ofNodes, disruptive, OnNode, cooldown, cooled},
	{remediations.Cooldown, besideNodes, disruptive, OnLedger, ofItsKind(remediations.Cooldown), saying("no repair of the target ended too short a time ago")},
	{remediations.RepairsSpent, ofNodesAndOfAPIServers, disruptive, OnLedger, repairsSpent, repairsLeft},
	{remediations.PolicyFailing, onNodesButSidecars, whatever, OnLedger, policyFailing, policyWorks},
	{remediations.ControlPlaneBusy, ofNodes, disruptive, OnFleet | OnLedger, controlPlaneBusy, controlPlaneFree},
	{remediations.ReasonClusterWide, ofNodes, disruptive, OnAlerts | OnFleet | OnLedger, clusterWide, wideEnough},
	{remediations.AtLimit, ofNodes, disruptive, OnFleet | OnLedger, atLimit, belowLimit},
	{remediations.AtLimit, onNodesBesideNodes, disruptive, OnFleet | OnLedger, ofItsKind(remediations.AtLimit), saying("fewer repairs of this kind are under way than may be")},
	{remediations.AwaitingApproval, onNodesButSidecars, whatever, OnNode, awaitingApproval, approved},
	{remediations.Observing, ofAll, whatever, OnNode, observing, saying("the mode is enforce")},
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

func nodeLeaving(c *Candidate) *Finding {
	if why := c.Config.HoldWhen.Leaving(c.Node, c.Journal); why != "" {
		return Because("%s", why)
	}
	return nil
}

func fleetUnhealthy(c *Candidate) *Finding {
	if c.Remediation().ClusterWide { // what many nodes have is what those are for
		return nil
	}
	for _, scope := range c.Fleet.BreakersFor(c.Config.Zone(c.Node)) {
		if f := c.brokenBy(scope, c.Fleet.Breakers[scope]); f != nil {
			return f
		}
	}
	return nil
}

// brokenBy asks one breaker that is not closed.
func (c *Candidate) brokenBy(scope string, b ledger.Breaker) *Finding {
	if b.State == ledger.BreakerHalfOpen {
		if b.Trial == c.Own || (b.Trial == "" && !c.Fleet.Busy(scope, c.Node.Name)) {
			return nil
		}
		return Because("the breaker of %s is half-open: one node is repaired first, and the others wait for how it ends", scope)
	}
	if calm := b.Quiet.Add(c.Config.Limits.StormCooldown); b.Quiet.Before(remediations.Instant(c.Now)) {
		return &Finding{Message: fmt.Sprintf("the breaker of %s is open: the storm was last seen at %s, and limits.stormCooldown is %s", scope, b.Quiet.Format(time.RFC3339), c.Config.Limits.StormCooldown), Until: calm}
	}
	return Because("the breaker of %s is open: %d of %d nodes are unhealthy, limits.unhealthy is %s; it lets go %s after that ends",
		scope, b.Unhealthy, b.Nodes, c.Config.Limits.Unhealthy, c.Config.Limits.StormCooldown)
}

func outsideWindow(c *Candidate) *Finding {
	open, next := c.window()
	if open {
		return nil
	}
	return &Finding{Message: "outside all of the configured windows", Until: next}
}

// window says whether a window is open; where there is a fleet, it was looked up for the whole pass.
func (c *Candidate) window() (open bool, next time.Time) {
	if c.Fleet == nil {
		return c.Config.InWindow(c.Now)
	}
	return c.Fleet.Window()
}

// underRepair is the finding that another repair of the node is under way.
func underRepair(r *remediations.Record) *Finding {
	return Because("another repair of this node is under way: %s by policy %s", r.ID, r.Policy)
}

func nodeUnderRepair(c *Candidate) *Finding {
	for _, r := range c.Journal.OtherRepairs {
		return underRepair(r)
	}
	if why := c.Fleet.LocationRepairOn(c.Node.Name); why != "" {
		return Because("%s", why)
	}
	return nil
}

// hostUnderRepair: the node on which the candidate's repair is recorded is under repair, or another target of it that does not
// share it.
func hostUnderRepair(c *Candidate) *Finding {
	if r := c.Journal.Record; r != nil && r.Phase.InFlight() {
		return Because("its node is under repair: %s by policy %s", r.ID, r.Policy)
	}
	for _, r := range c.Journal.OtherRepairs {
		if !r.Shares() && r != c.record() {
			return underRepair(r)
		}
	}
	return nil
}

func beingReplaced(c *Candidate) *Finding {
	if o := c.Ledger.Replacing(c.Node); o != nil && o.Record.ID != c.Own {
		return Because("repair %s by policy %s is replacing the machine of the Node that had this name or this machine before", o.Record.ID, o.Record.Policy)
	}
	return nil
}

func cooldown(c *Candidate) *Finding {
	if c.Acted() {
		return nil
	}
	e := c.lastRepair()
	if e == nil || !c.Now.Before(e.Ended.Add(c.Policy.Cooldown)) {
		return nil
	}
	return &Finding{Message: fmt.Sprintf("the last repair by policy %s ended at %s; its cooldown is %s", e.Policy, e.Ended.Format(time.RFC3339), c.Policy.Cooldown), Until: e.Ended.Add(c.Policy.Cooldown)}
}

// lastRepair is the last repair of the node by the policy that counts for it; nil: none is on record.
func (c *Candidate) lastRepair() *remediations.Entry {
	for i, e := range c.Journal.History {
		if e.Policy == c.Policy.Name && remediations.KindOf(e.Target) == remediations.KindNode && c.counts(e) {
			return &c.Journal.History[i]
		}
	}
	return nil
}

// counts says that the ended repair holds the candidate as one that did something. For a policy that only observes, so does what
// would have: it says what would be done in reality. One that enforces is held by no such thing.
func (c *Candidate) counts(e remediations.Entry) bool {
	return len(e.Steps) > 0 || (e.Outcome == remediations.Observed && c.Policy.Mode == remediations.ModeObserve)
}

// begun counts the disruptive repairs that began on the machine in the window, and says when the oldest did.
func (c *Candidate) begun() (count int, oldest time.Time) {
	window := c.Config.Limits.RepairsWindow
	count, oldest = c.Ledger.Begun(ledger.Machine(c.Node), c.Own, c.Now, window)
	for _, e := range c.Journal.History {
		disrupts := e.Would != nil && c.Config.Remediation(remediations.StepName(e.Would.Step)).Disruptive
		if !disrupts || remediations.KindOf(e.Target) != remediations.KindNode || !c.counts(e) || c.Now.Sub(e.Ended) >= window {
			continue
		}
		if count++; oldest.IsZero() || e.Ended.Before(oldest) {
			oldest = e.Ended
		}
	}
	return count, oldest
}

func repairsSpent(c *Candidate) *Finding {
	l := c.Config.Limits
	begun, oldest := c.begun()
	if begun < l.RepairsPerNode {
		return nil
	}
	return &Finding{
		Message: fmt.Sprintf("%d repairs began on this machine within %s, limits.repairsPerNode is %d; somebody must look at it", begun, l.RepairsWindow, l.RepairsPerNode),
		Until:   oldest.Add(l.RepairsWindow),
	}
}

func policyFailing(c *Candidate) *Finding {
	if why := c.Ledger.Status.Stopped[c.Policy.Name]; why != "" {
		return Because("policy %s is stopped, since the provider refuses its calls: %s; set %s=true on one of its nodes, once that is fixed, to go on", c.Policy.Name, text.Line(why, 200), remediations.ResetKey)
	}
	if !c.Ledger.Failing(c.Policy.Name) {
		return nil
	}
	return Because("the last %d repairs by policy %s all ran out of steps; set %s=true on one of their nodes, once its cause is found, to go on", ledger.FailingAfter, c.Policy.Name, remediations.ResetKey)
}

func controlPlaneBusy(c *Candidate) *Finding {
	if why := c.Fleet.ControlPlaneBusy(c.Node); why != "" {
		return &Finding{Message: why}
	}
	return nil
}

func atLimit(c *Candidate) *Finding {
	if why := c.Fleet.AtLimit(c.Config, c.Node, c.Policy.Mode == remediations.ModeObserve); why != "" {
		return &Finding{Message: why}
	}
	return nil
}

// observing comes last, so that it is reached only by what would be done this very moment.
func observing(c *Candidate) *Finding {
	if c.Policy.Mode == remediations.ModeEnforce {
		return nil
	}
	return Because("would %s %s now (attempt %d) %s; the mode is observe", c.Remediation().Verb, c.Subject, c.Step.Attempt, c.By())
}

// Candidate is one repair that might act now, as the guards see it.
type Candidate struct {
	*State
	Now    time.Time
	Policy *remediations.Policy
	Step   remediations.StepRef
	// Alert is the repair's, Request what a person asked for; a repair has one of the two.
	Alert   *remediations.Alert
	Request string
	// kind is what it is a repair of, and subject that target in a sentence.
	Kind    remediations.Kind
	Subject string
	// target is the one that is not the node itself; nil: it is the node.
	target *Target
	// Spent says why there is no further attempt; empty: there may be.
	Spent   string
	Verdict alerts.Verdict
	// Repair is the id of the repair that would act, where it has acted before; empty: it has not.
	Repair string
	// Own is the id under which it would act, new or not: what was counted for it does not hold it.
	Own string
}

func (c *Candidate) Remediation() remediations.Remediation { return c.Config.Remediation(c.Step.Name) }

// record is the repair of its target; nil: there is none.
func (c *Candidate) record() *remediations.Record {
	if c.target == nil {
		return c.Journal.Record
	}
	return c.target.Record
}

// Acted says that the repair has issued a step already.
func (c *Candidate) Acted() bool { return c.Repair != "" }

// By says by what right it would act.
func (c *Candidate) By() string {
	if c.Request != "" {
		return "as " + remediations.RequestKey + " asked: " + c.Request
	}
	return "by policy " + c.Policy.Name
}
