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

// Hold is why a node's next step does not begin now.
type Hold struct {
	Reason  remediations.Reason `json:"reason"`
	Message string              `json:"message"`
	Until   *time.Time          `json:"until,omitempty"`
	// alert is a fingerprint. It is empty if the hold is about no alert or about several.
	alert string
}

// Says returns the reason with the message, if there is one.
func (h *Hold) Says() string {
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", h.Reason, h.Message), ": ")
}

// notInCharge means that another installation of Drydock may act in the cluster. No guard returns
// it, because the guards do not run in this installation.
const notInCharge = remediations.Reason("NotInCharge")

// Unwritten returns the hold if Drydock cannot write on the Node. It returns nil if that is
// unknown. This hold comes before all others: without a record on the Node, Drydock does nothing.
func (l *Ledger) Unwritten(n *corev1.Node) *Hold {
	aside, denied := l.Aside, ""
	if l.Status != nil {
		aside, denied = cmp.Or(l.Status.Aside, aside), l.denied(n)
	}
	switch {
	case aside != "":
		return &Hold{Reason: notInCharge, Message: aside}
	case denied != "":
		return &Hold{Reason: remediations.ReasonWritesDenied, Message: denied}
	}
	return nil
}

func (l *Ledger) denied(n *corev1.Node) string {
	return cmp.Or(l.Status.Denied, l.Status.Unwritten[n.Name])
}

// HoldNow returns the first hold of the node's next step that the Node or the ledger shows, or nil.
// It ignores a hold in r whose end has passed or whose cause is no longer on the Node.
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
		return recorded(r) // the checks below need the ledger
	}
	return nil
}

func recorded(r *remediations.Record) *Hold {
	return &Hold{Reason: r.Hold.Reason, Message: r.Hold.Message, Until: r.Hold.Until, alert: r.Cause.Alert}
}

func stands(n *corev1.Node, h *remediations.Hold, now time.Time) bool {
	if h.Until != nil && !h.Until.After(now) {
		return false
	}
	switch h.Reason { //nolint:exhaustive // the others rest on nothing that the Node shows
	case remediations.ReasonExcluded, remediations.ReasonPaused:
		return false // if people still held repairs, Said would have returned that
	case remediations.ReasonCordonedByOther:
		return n.Spec.Unschedulable
	case remediations.ReasonNodeUnderRepair:
		return remediations.InFlight(n) != nil || len(remediations.ReadJournal(n).OtherRepairs) > 0
	}
	return true
}

// fleetwide returns the ledger's message for a hold that concerns many nodes, or "" if it does not
// concern this node: the ledger has one message for each reason, which may be about another policy,
// zone or pool. step is empty if the node has no record yet.
func (l *Ledger) fleetwide(reason remediations.Reason, n *corev1.Node, policy, step string) string {
	if l.Status == nil {
		return ""
	}
	message, about := l.Status.Holds[reason], l.Status.Concerns[reason]
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
		if other(about.Policy, policy) {
			return fmt.Sprintf("policy %s is stopped: its last %d repairs failed", policy, ledger.FailingAfter)
		}
	case remediations.ReasonControlPlaneBusy:
		if !remediations.ControlPlane(n) {
			return ""
		}
	case remediations.ReasonNotWitnessed, remediations.ReasonProviderAbsent:
		if other(about.Policy, policy) {
			return ""
		}
	case remediations.ReasonClusterWide:
		// This hold stops every step that changes the whole cluster, because only one such repair may run
		// at a time. If step is empty, the hold counts only for the policy that it is about. That
		// policy's next step most likely changes the whole cluster.
		of, known := remediations.Registry(nil).Of(step)
		if (known && !of.ClusterWide) || (!known && other(about.Policy, policy)) {
			return ""
		}
	case remediations.ReasonAtLimit:
		if other(about.Zone, l.Zone(n)) || other(about.Pool, l.Pool(n)) {
			return ""
		}
	}
	return message
}

// about is the only policy, zone or pool that the hold concerns, or "" if it concerns all.
func other(about, name string) bool { return about != "" && about != name }

// brokenFor returns a message about an open breaker of the cluster or of the Node's zone, or "".
// The ledger's message may be about another zone. Then brokenFor makes its own.
func (l *Ledger) brokenFor(n *corev1.Node, message string) string {
	scopes := l.breakersOver(n)
	if len(scopes) > 0 && !other(l.Status.Concerns[remediations.ReasonFleetUnhealthy].Zone, l.Zone(n)) {
		return message
	}
	for _, scope := range scopes {
		if b := l.Status.Breakers[scope]; b.State == ledger.BreakerOpen {
			return fmt.Sprintf("the breaker of %s is open: %d of %d nodes are unhealthy", scope, b.Unhealthy, b.Nodes)
		}
	}
	return ""
}

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

// Counts reports whether the breakers count the Node. They do not count an excluded Node or one
// younger than limits.startupGrace.
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

// poolLabels are the default of limits.poolLabels. They are used if an older Drydock wrote the
// ledger without the field poolLabels.
var poolLabels = []string{
	"kubernetes.civo.com/civo-node-pool", "kubernetes.civo.com/node-pool", "karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup",
	"cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "cluster.x-k8s.io/deployment-name", "cluster.x-k8s.io/pool-name",
}

// Zone returns the Node's zone, or "" if it has none.
func (l *Ledger) Zone(n *corev1.Node) string { return l.labels().Zone(n) }

// Pool returns the Node's pool, or "" if it has none.
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

// Ill returns why the breakers count the node as unhealthy, or "" if they do not. A breaker holds
// repairs while too many nodes are unhealthy.
func Ill(n *corev1.Node) string { return ill(n, firing(n)) }

// ill returns "" for a node that the breakers count as healthy. alerts are its firing alerts.
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

func wellAgain(n *corev1.Node) bool {
	r, err := remediations.DecodeRecord(n.Annotations[remediations.NodeRepairKey])
	return err == nil && r.WellAgain(n)
}

// A Node without the Ready condition has not started yet and is not unready.
func unready(n *corev1.Node) bool {
	c := remediations.ReadyCondition(n)
	return c != nil && c.Status != corev1.ConditionTrue
}

func firing(n *corev1.Node) []remediations.Alert {
	return slices.DeleteFunc(remediations.AlertsOn(n.Annotations), func(a remediations.Alert) bool {
		return a.Policy == "" || a.Status != remediations.StatusFiring
	})
}

// spent is the hold for an exhausted repair, which has tried all its steps without success. No
// guard returns it.
func spent(r *remediations.Record) *Hold {
	return &Hold{
		Reason:  remediations.Reason(remediations.PhaseExhausted),
		Message: fmt.Sprintf("repair %s is exhausted; a person must check the node%s%s", r.ID, leftWith(r), wellSince(r)),
	}
}

// wellSince returns "" if the node is not healthy or the time is unknown.
func wellSince(r *remediations.Record) string {
	if r.WellSince.IsZero() {
		return ""
	}
	return "; the node has been healthy since " + Stamp(r.WellSince)
}

func afterFix(node string) string {
	return "once the node is fixed: `kubectl drydock reset " + node + "`"
}
