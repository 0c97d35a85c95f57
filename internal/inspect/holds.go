package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Hold is what keeps a node's next step back, now.
type Hold struct {
	Reason  remediations.Reason `json:"reason"`
	Message string              `json:"message"`
	Until   *time.Time          `json:"until,omitempty"`
	// alert is the fingerprint of the alert whose repair is held; empty: any of the node's.
	alert string
}

// Says is the reason with its message, as far as there is one.
func (h *Hold) Says() string {
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", h.Reason, h.Message), ": ")
}

// NotInCharge is the hold where another installation of Drydock is in charge of the cluster. No guard says it: this one asks none.
const NotInCharge = remediations.Reason("NotInCharge")

// Unwritten is why Drydock writes nothing on the Node, as the ledger and the cluster's Lease say; nil: it does, or that is not known.
// It comes before all other holds, because without a record on the Node nothing is done.
func (l *Ledger) Unwritten(n *corev1.Node) *Hold {
	aside, denied := l.Aside, ""
	if l.Status != nil {
		aside, denied = cmp.Or(l.Status.Aside, aside), l.denied(n)
	}
	switch {
	case aside != "":
		return &Hold{Reason: NotInCharge, Message: aside}
	case denied != "":
		return &Hold{Reason: remediations.ReasonWritesDenied, Message: denied}
	}
	return nil
}

// denied is why the API server refuses what Drydock writes on this Node, or on all; empty: it takes that.
func (l *Ledger) denied(n *corev1.Node) string {
	return cmp.Or(l.Status.Denied, l.Status.Unwritten[n.Name])
}

// HoldNow is the first guard that holds the node's next step, by what the Node and the ledger say now; nil: none that they know of.
// A hold on the record is believed only while nothing that can be seen here contradicts it.
func (l *Ledger) HoldNow(n *corev1.Node, policy string, r *remediations.Record, now time.Time) *Hold {
	if h := cmp.Or(l.Unwritten(n), l.Said(n, now)); h != nil {
		return h
	}
	if r != nil && r.Hold != nil && !r.Hold.Reason.Fleetwide() && stands(n, r.Hold, now) {
		return recorded(r)
	}
	step := ""
	if r != nil {
		step = r.Step.Name
	}
	for _, reason := range remediations.Reasons {
		if message := l.fleetwide(reason, n, policy, step); message != "" {
			return &Hold{Reason: reason, Message: message}
		}
	}
	if l.Status == nil && r != nil && r.Hold != nil && stands(n, r.Hold, now) {
		return recorded(r) // nobody can say more without the ledger
	}
	return nil
}

func recorded(r *remediations.Record) *Hold {
	return &Hold{Reason: r.Hold.Reason, Message: r.Hold.Message, Until: r.Hold.Until, alert: r.Cause.Alert}
}

// stands says that nothing on the Node contradicts the hold: its time is not over, and what it rests on is still there.
func stands(n *corev1.Node, h *remediations.Hold, now time.Time) bool {
	if h.Until != nil && !h.Until.After(now) {
		return false
	}
	switch h.Reason { //nolint:exhaustive // the others rest on nothing that the Node shows
	case remediations.ReasonExcluded, remediations.ReasonPaused:
		return false // Said would have found it
	case remediations.ReasonCordonedByOther:
		return n.Spec.Unschedulable
	case remediations.ReasonNodeUnderRepair:
		return remediations.InFlight(n) != nil || len(remediations.ReadJournal(n).OtherRepairs) > 0
	}
	return true
}

// fleetwide is what the ledger says of a hold that lies with the fleet, where it concerns the node; empty: nothing. The ledger has one
// message for each reason, and that may be about another policy, zone or pool. An empty step: none is on record.
func (l *Ledger) fleetwide(reason remediations.Reason, n *corev1.Node, policy, step string) string {
	if l.Status == nil {
		return ""
	}
	message := l.Status.Holds[reason]
	switch reason { //nolint:exhaustive // the others concern every node
	case remediations.ReasonBlind:
		if l.Status.Blind != "" {
			return l.Status.Blind
		}
	case remediations.ReasonWritesDenied:
		return l.denied(n)
	case remediations.ReasonFleetUnhealthy:
		return l.brokenFor(n, message)
	case remediations.ReasonPolicyFailing:
		if why := l.Status.Stopped[policy]; why != "" {
			return why
		}
		if !l.Whole.Failing(policy) {
			return ""
		}
		if isOther(message, "policy ", " is stopped", policy) {
			return fmt.Sprintf("policy %s is stopped: its last %d repairs ran out of steps", policy, ledger.FailingAfter)
		}
	case remediations.ReasonControlPlaneBusy:
		if !remediations.ControlPlane(n) {
			return ""
		}
	case remediations.ReasonNotWitnessed:
		if isOther(message, "policy ", " has no witness", policy) {
			return ""
		}
	case remediations.ReasonProviderAbsent:
		if isOther(message, "no step of policy ", " can be carried out", policy) {
			return ""
		}
	case remediations.ReasonClusterWide:
		// It holds every other step that changes the cluster. Where the step is not known, the policy that does so now most likely has it.
		of, known := remediations.Registry(nil).Of(step)
		if (known && !of.ClusterWide) || (!known && isOther(message, " by policy ", " changes", policy)) {
			return ""
		}
	case remediations.ReasonAtLimit:
		if isOther(message, " in zone ", ";", l.Zone(n)) || isOther(message, " in pool ", ";", l.Pool(n)) {
			return ""
		}
	}
	return message
}

// isOther says that the message names something else than name between before and after. A message that names nothing there, for
// example the answer of a provider, is about all.
func isOther(message, before, after, name string) bool {
	_, rest, names := strings.Cut(message, before)
	named, _, ends := strings.Cut(rest, after)
	named, _, _ = strings.Cut(named, " (") // who counts there
	return names && ends && named != name
}

// brokenFor is the message about the breakers, where one that the Node belongs to is not closed. A message about another zone is
// replaced by what the Node's own open breaker shows.
func (l *Ledger) brokenFor(n *corev1.Node, message string) string {
	scopes := l.breakersOver(n)
	if len(scopes) > 0 && !isOther(message, "the breaker of zone/", " is ", l.Zone(n)) {
		return message
	}
	for _, scope := range scopes {
		if b := l.Status.Breakers[scope]; b.State == ledger.BreakerOpen {
			return fmt.Sprintf("the breaker of %s is open: %d of %d nodes are unhealthy", scope, b.Unhealthy, b.Nodes)
		}
	}
	return ""
}

// breakersOver are the breakers that are not closed and that the Node belongs to.
func (l *Ledger) breakersOver(n *corev1.Node) (scopes []string) {
	if l.Status == nil {
		return nil
	}
	for _, scope := range []string{ledger.ScopeCluster, "zone/" + l.Zone(n)} {
		if _, open := l.Status.Breakers[scope]; open {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// Counts says that the breakers count the Node, well or not: no person has excluded it, and it is not younger than limits.startupGrace.
func (l *Ledger) Counts(n *corev1.Node, now time.Time) bool {
	if remediations.Excluded(n) {
		return false
	}
	if l.Status == nil {
		return true
	}
	grace, err := time.ParseDuration(l.Status.Limits["startupGrace"])
	return err != nil || !n.CreationTimestamp.After(now.Add(-grace))
}

// poolLabels name a Node's pool where the ledger is older than its poolLabels: they are the default of limits.poolLabels.
var poolLabels = []string{
	"kubernetes.civo.com/civo-node-pool", "kubernetes.civo.com/node-pool", "karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup",
	"cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "cluster.x-k8s.io/deployment-name", "cluster.x-k8s.io/pool-name",
}

// Zone is the Node's zone by the label that Drydock has written into the ledger, or by the default label; empty: it has none.
func (l *Ledger) Zone(n *corev1.Node) string { return l.labels().Zone(n) }

// Pool is the Node's pool, likewise.
func (l *Ledger) Pool(n *corev1.Node) string { return l.labels().Pool(n) }

func (l *Ledger) labels() remediations.Limits {
	out := remediations.Limits{ZoneLabel: corev1.LabelTopologyZone, PoolLabels: poolLabels}
	if l.Status == nil {
		return out
	}
	out.ZoneLabel = cmp.Or(l.Status.Limits["zoneLabel"], out.ZoneLabel)
	if written, known := l.Status.Limits["poolLabels"]; known {
		out.PoolLabels = strings.Split(written, ",")
	}
	return out
}

// Ill says why the breaker counts the node; empty: it does not.
func Ill(n *corev1.Node) string { return ill(n, Firing(n)) }

// ill says why the breaker counts the node; empty: it does not.
func ill(n *corev1.Node, alerts []remediations.Alert) string {
	switch {
	case unready(n):
		return "not Ready"
	case n.Labels[remediations.PhaseLabel] == string(remediations.PhaseExhausted) && !wellAgain(n):
		return "Exhausted"
	case len(alerts) > 0:
		return "alert " + alerts[0].Name
	}
	return ""
}

// wellAgain says that Drydock found the node of an exhausted repair well.
func wellAgain(n *corev1.Node) bool {
	r, err := remediations.DecodeRecord(n.Annotations[remediations.NodeRepairKey])
	return err == nil && r.WellAgain(n)
}

// unready says that the Node's own condition is not True. A Node without one has not begun yet.
func unready(n *corev1.Node) bool {
	c := remediations.ReadyCondition(n)
	return c != nil && c.Status != corev1.ConditionTrue
}

// Firing are the alerts on the Node that a policy takes and that have not ended.
func Firing(n *corev1.Node) []remediations.Alert {
	return slices.DeleteFunc(remediations.AlertsOn(n.Annotations), func(a remediations.Alert) bool {
		return a.Policy == "" || a.Status != remediations.StatusFiring
	})
}

// spent is the hold of a repair that ran out of steps. No guard says it: a person must look.
func spent(r *remediations.Record) *Hold {
	return &Hold{
		Reason:  remediations.Reason(remediations.PhaseExhausted),
		Message: fmt.Sprintf("repair %s ran out of steps, and a person must look%s%s", r.ID, LeftWith(r), wellSince(r)),
	}
}

// wellSince says that the node of the exhausted repair is well; empty: it is not, or that is not known.
func wellSince(r *remediations.Record) string {
	if r.WellSince.IsZero() {
		return ""
	}
	return "; the node is well since " + Stamp(r.WellSince)
}

// onceMended is what a person may do about that.
func onceMended(node string) string {
	return "once the node is fixed: `kubectl drydock reset " + node + "`"
}
