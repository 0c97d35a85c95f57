package remediations

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// candidate is one repair that might act now, as the guards see it.
type candidate struct {
	*State
	now    time.Time
	policy *Policy
	step   StepRef
	// alert is the repair's, request what a person asked for; a repair has one of the two.
	alert   *Alert
	request string
	// pod is whose sidecar it is; nil: the repair is the node's.
	pod     *Pod
	verdict verdict
	// repair is the id of the repair that would act, where it has acted before; empty: it has not.
	repair string
	// own is the id under which it would act, new or not: what was counted for it does not hold it.
	own string
}

func (c *candidate) remediation() Remediation { return Registry[c.step.Name] }
func (c *candidate) disruptive() bool         { return c.remediation().Disruptive }

// what it would act on.
func (c *candidate) what() string {
	if c.pod != nil {
		return "the sidecar of " + c.pod.String()
	}
	return c.Node.Name
}

// by says by what right it would act.
func (c *candidate) by() string {
	if c.request != "" {
		return "as " + RequestKey + " asked: " + c.request
	}
	return "by policy " + c.policy.Name
}

// finding is a guard's word: why not, and until when where that is known.
type finding struct {
	message string
	until   time.Time
	// fleetwide: the cause is not the node's, though the reason may be.
	fleetwide bool
}

func because(format string, args ...any) *finding {
	return &finding{message: fmt.Sprintf(format, args...)}
}

// guard returns nil where it has nothing against the repair.
type guard struct {
	reason Reason
	find   func(*candidate) *finding
}

// guards in the order in which they are asked; the first that finds something holds the repair. RecordMalformed comes
// before all of them, in Decide: without a record there is no candidate.
var guards = []guard{
	{ReasonExcluded, excluded},
	{Paused, paused},
	{NodeLeaving, nodeLeaving},
	{CordonedByOther, cordonedByOther},
	{AlertUnconfirmed, confirmedAs(AlertUnconfirmed)},
	{Blind, blind},
	{Silenced, confirmedAs(Silenced)},
	{Inhibited, confirmedAs(Inhibited)},
	{AlertResolved, alertResolved},
	{TooYoung, tooYoung},
	{FleetUnhealthy, fleetUnhealthy},
	{OutsideWindow, outsideWindow},
	{NodeUnderRepair, nodeUnderRepair},
	{Cooldown, cooldown},
	{RepairsSpent, repairsSpent},
	{PolicyFailing, policyFailing},
	{ControlPlaneBusy, controlPlaneBusy},
	{AtLimit, atLimit},
	{AwaitingApproval, awaitingApproval},
	{Observing, observing},
}

// hold asks the guards in order.
func (c *candidate) hold() (Reason, *finding) {
	for _, g := range guards {
		if f := g.find(c); f != nil {
			return g.reason, f
		}
	}
	return "", nil
}

func excluded(c *candidate) *finding {
	if !Excluded(c.Node) {
		return nil
	}
	return because("the label %s=%s takes the node out of Drydock's hands; remove it to end that", ExcludeLabel, clip(c.Node.Labels[ExcludeLabel], 63))
}

func paused(c *candidate) *finding {
	// For a sidecar both stand until Decide takes them off, once the leases agree that their time is over.
	if why, broken := c.Node.Annotations[BreakGlassKey]; broken && (c.pod != nil || !c.glassMended(c.now)) {
		f := because("%s is set (%s); remove it to end that", BreakGlassKey, clip(why, 80))
		if since := c.glassSince(); !since.IsZero() {
			f.until = since.Add(glassFor)
		}
		return f
	}
	if v, ok := c.Node.Annotations[CancelKey]; ok && !isID(v) {
		return because("somebody wrote %s=%q and may have meant this repair", CancelKey, clip(v, 40))
	}
	v, ok := c.Node.Annotations[PauseKey]
	if !ok {
		return cancelled(c)
	}
	p, err := ParsePause(v)
	switch {
	case err != nil:
		return because("%v; until then the node is paused", err)
	case p.Until.IsZero():
		return because("paused by %s%s; remove it to go on", PauseKey, aside(p.Why))
	case c.pod != nil || c.now.Before(p.Until):
		return &finding{message: fmt.Sprintf("paused by %s%s", PauseKey, aside(p.Why)), until: p.Until}
	}
	return cancelled(c)
}

// cancelled holds an alert whose last repair a person cancelled, until it has ended and fires again: the next repair
// would only be the cancelled one under another name.
func cancelled(c *candidate) *finding {
	if c.alert == nil || c.acted() {
		return nil
	}
	startsAt := c.verdict.startsAt
	if startsAt.IsZero() {
		startsAt = c.alert.StartsAt
	}
	for _, e := range c.Journal.History {
		if e.Cause != c.alert.Fingerprint || (e.By == "" && len(e.Steps) == 0) {
			continue
		}
		if e.By != ByPerson || at(startsAt).After(e.Ended) {
			return nil
		}
		f := because("repair %s of this alert was cancelled at %s; another begins when the alert has ended and fires again", e.ID, e.Ended.Format(time.RFC3339))
		if c.pod == nil { // a request names no pod
			f.message += fmt.Sprintf(", or by %s=%s%s", RequestKey, requestPolicy, c.policy.Name)
		}
		return f
	}
	return nil
}

func aside(why string) string {
	if why == "" {
		return ""
	}
	return " (" + clip(why, 80) + ")"
}

// leavingTaints mark a node that another system is taking away or shutting down.
var leavingTaints = []string{
	"DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler",
	"karpenter.sh/disrupted", "karpenter.sh/disruption",
	"node.cloudprovider.kubernetes.io/shutdown",
}

func nodeLeaving(c *candidate) *finding {
	if c.Node.DeletionTimestamp != nil {
		return because("the Node is being deleted")
	}
	for _, t := range c.Node.Spec.Taints {
		if slices.Contains(leavingTaints, t.Key) {
			return because("the taint %s says that the node is being taken away", t.Key)
		}
	}
	return nil
}

func cordonedByOther(c *candidate) *finding {
	if !c.Node.Spec.Unschedulable || c.policy.RepairCordoned || c.cordonedByUs() {
		return nil
	}
	return because("the node was cordoned, and not by this repair; somebody may be at work on it. Uncordon it, or set repairCordoned in policy %s", c.policy.Name)
}

func (c *candidate) cordonedByUs() bool {
	r := c.Journal.Record
	return r != nil && slices.ContainsFunc(r.Undo, func(u Undo) bool { return u.Kind == UndoCordon })
}

// confirmedAs lets one guard through the verdict of the Alertmanagers, which carries its own reason.
func confirmedAs(reason Reason) func(*candidate) *finding {
	return func(c *candidate) *finding {
		if c.verdict.reason != reason || (reason == AlertUnconfirmed && c.resolved()) {
			return nil
		}
		return &finding{message: c.verdict.message, until: c.verdict.until, fleetwide: c.verdict.fleetwide}
	}
}

func blind(c *candidate) *finding {
	if why := c.Word.BlindCause(c.Config); why != "" {
		return because("%s; no alert is acted upon until that ends", why)
	}
	if c.verdict.reason == Blind {
		return &finding{message: c.verdict.message}
	}
	if why := c.Heartbeats.Blind(); why != "" && c.pod == nil { // a sidecar is asked itself
		return because("%s; nothing is done until that ends", why)
	}
	return nil
}

// resolved says that the alert is over: nobody has it, and either it was said to be resolved or this repair has
// already acted, so that its end is the likely effect.
func (c *candidate) resolved() bool {
	return c.verdict.gone && (c.alert == nil || c.alert.Status == StatusResolved || c.acted())
}

func alertResolved(c *candidate) *finding {
	if c.request != "" || !c.resolved() {
		return nil
	}
	return because("the alert is over; nothing more is done unless it fires again")
}

func tooYoung(c *candidate) *finding {
	if c.pod == nil && ReadyCondition(c.Node) == nil {
		return because("the node has no Ready condition yet; no data is not a fault")
	}
	if grown := c.Node.CreationTimestamp.Add(c.Config.Limits.StartupGrace); c.pod == nil && c.now.Before(grown) {
		return &finding{message: fmt.Sprintf("the node is younger than limits.startupGrace (%s)", c.Config.Limits.StartupGrace), until: grown}
	}
	if due := c.verdict.startsAt.Add(c.policy.For); c.request == "" && c.now.Before(due) {
		return &finding{message: fmt.Sprintf("the alert has not been firing for %s yet", c.policy.For), until: due}
	}
	return nil
}

func fleetUnhealthy(c *candidate) *finding {
	if !c.disruptive() {
		return nil
	}
	scope, b := c.Fleet.breakerFor(c.Config.Zone(c.Node))
	if scope == "" {
		return nil
	}
	if b.State == BreakerHalfOpen {
		if b.Trial == c.own || (b.Trial == "" && !c.Fleet.busy(scope, c.Node.Name)) {
			return nil
		}
		return because("the breaker of %s is half-open: one node is repaired first, and the others wait for how it ends", scope)
	}
	if calm := b.Quiet.Add(c.Config.Limits.StormCooldown); b.Quiet.Before(at(c.now)) {
		return &finding{message: fmt.Sprintf("the breaker of %s is open: the storm was last seen at %s, and limits.stormCooldown is %s", scope, b.Quiet.Format(time.RFC3339), c.Config.Limits.StormCooldown), until: calm}
	}
	return because("the breaker of %s is open: %d of %d nodes are unhealthy, limits.unhealthy is %s; it lets go %s after that ends",
		scope, b.Unhealthy, b.Nodes, c.Config.Limits.Unhealthy, c.Config.Limits.StormCooldown)
}

func outsideWindow(c *candidate) *finding {
	if !c.disruptive() || c.Fleet.windowOpen {
		return nil
	}
	return &finding{message: "outside all of the configured windows", until: c.Fleet.nextWindow}
}

func nodeUnderRepair(c *candidate) *finding {
	if r := c.Journal.Record; c.pod != nil && r != nil && r.Phase.InFlight() {
		return because("its node is under repair: %s by policy %s", r.ID, r.Policy)
	}
	for _, r := range c.Journal.OtherRepairs {
		if c.pod != nil && r.Pod != nil {
			continue // sidecars of one node do not exclude each other
		}
		return because("another repair of this node is under way: %s by policy %s", r.ID, r.Policy)
	}
	if o := c.Ledger.replacing(c.Node); o != nil && o.Record.ID != c.own {
		return because("repair %s by policy %s is replacing the machine of the Node that had this name or this machine before", o.Record.ID, o.Record.Policy)
	}
	return nil
}

func cooldown(c *candidate) *finding {
	if !c.disruptive() || c.acted() {
		return nil
	}
	for _, e := range c.Journal.History {
		if e.Policy != c.policy.Name || kindOf(e.Target) != "" || len(e.Steps) == 0 {
			continue
		}
		if over := e.Ended.Add(c.policy.Cooldown); c.now.Before(over) {
			return &finding{message: fmt.Sprintf("the last repair by policy %s ended at %s; its cooldown is %s", e.Policy, e.Ended.Format(time.RFC3339), c.policy.Cooldown), until: over}
		}
		return nil
	}
	return nil
}

func repairsSpent(c *candidate) *finding {
	if !c.disruptive() {
		return nil
	}
	l := c.Config.Limits
	begun, oldest := c.Ledger.begun(Machine(c.Node), c.own, c.now, l.RepairsWindow)
	if begun < l.RepairsPerNode {
		return nil
	}
	return &finding{
		message: fmt.Sprintf("%d repairs began on this machine within %s, limits.repairsPerNode is %d; somebody must look at it", begun, l.RepairsWindow, l.RepairsPerNode),
		until:   oldest.Add(l.RepairsWindow),
	}
}

func policyFailing(c *candidate) *finding {
	if c.pod != nil {
		return nil
	}
	if why := c.Ledger.Status.Stopped[c.policy.Name]; why != "" {
		return because("policy %s is stopped, since the provider refuses its calls: %s; set %s=true on one of its nodes, once that is mended, to go on", c.policy.Name, clip(why, 200), ResetKey)
	}
	if !c.Ledger.Failing(c.policy.Name) {
		return nil
	}
	return because("the last %d repairs by policy %s all ran out of steps; set %s=true on one of their nodes, once its cause is found, to go on", failingAfter, c.policy.Name, ResetKey)
}

func controlPlaneBusy(c *candidate) *finding {
	if !c.disruptive() {
		return nil
	}
	if why := c.Fleet.controlPlaneBusy(c.Node); why != "" {
		return &finding{message: why}
	}
	return nil
}

func atLimit(c *candidate) *finding {
	if !c.disruptive() {
		return nil
	}
	if why := c.Fleet.atLimit(c.Config, c.Node, c.policy.Mode == ModeObserve); why != "" {
		return &finding{message: why}
	}
	return nil
}

// awaitingApproval holds the first step of a repair whose policy wants a person's word.
func awaitingApproval(c *candidate) *finding {
	r := c.Journal.Record
	if !c.policy.Approval || c.acted() || (r != nil && r.ID == c.own && c.Node.Annotations[ApproveKey] == c.own) {
		return nil
	}
	return because("policy %s wants a person's approval: kubectl drydock approve %s, or kubectl annotate node %[2]s %s=%s", c.policy.Name, c.Node.Name, ApproveKey, c.own)
}

// acted says that the repair has issued a step already.
func (c *candidate) acted() bool { return c.repair != "" }

// observing comes last, so that it is reached only by what would be done this very moment.
func observing(c *candidate) *finding {
	if c.policy.Mode == ModeEnforce {
		return nil
	}
	return because("would %s %s now (attempt %d) %s; the mode is observe", c.remediation().Verb, c.what(), c.step.Attempt, c.by())
}

// MayStillAct asks, right before a call leaves, whether what people and the record say of the node still lets it: the
// intent is still on record, and nobody has put in a word since it was written.
func MayStillAct(n *corev1.Node, intentID string) error {
	r := ReadJournal(n).Record
	if r == nil || r.Phase != Acting || r.Intent.ID != intentID {
		return fmt.Errorf("the intent %s is no longer on record", intentID)
	}
	if refuses := Registry[r.Step.Name].refuses; refuses != nil && refuses(n) != "" {
		return errors.New(refuses(n))
	}
	return letsAct(n)
}

// letsAct says whether what people say of the node still lets Drydock act on it, or on a pod of it.
func letsAct(n *corev1.Node) error {
	if Excluded(n) {
		return fmt.Errorf("the node was excluded by the label %s", ExcludeLabel)
	}
	if f := nodeLeaving(&candidate{State: &State{Node: n}}); f != nil {
		return errors.New(f.message)
	}
	// A pause that is over has been consumed by now; one that still stands holds, whatever it says.
	for _, key := range []string{BreakGlassKey, PauseKey, CancelKey} {
		if _, ok := n.Annotations[key]; ok {
			return fmt.Errorf("%s was set in the meantime", key)
		}
	}
	return nil
}

// facts is what a proof is judged by.
func facts(n *corev1.Node) *NodeFacts {
	return &NodeFacts{BootID: n.Status.NodeInfo.BootID, UID: string(n.UID), ProviderID: n.Spec.ProviderID}
}
