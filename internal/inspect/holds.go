package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Hold is what keeps a node's next step back, now.
type Hold struct {
	Reason  remediations.Reason `json:"reason"`
	Message string              `json:"message"`
	Until   *time.Time          `json:"until,omitempty"`
	// alert is the fingerprint of the alert whose repair is held; empty: any of the node's.
	alert string
}

// HoldNow is the first guard that holds the node's next step, by what the Node and the ledger say now; nil: none that they know of.
// A hold on the record is believed only while nothing that can be seen here contradicts it.
func (l *Ledger) HoldNow(n *corev1.Node, policy string, r *remediations.Record, now time.Time) *Hold {
	if h := Said(n, now); h != nil {
		return h
	}
	if r != nil && r.Hold != nil && !r.Hold.Reason.Fleetwide() && stands(n, r.Hold, now) {
		return recorded(r)
	}
	for _, reason := range remediations.Reasons {
		if message := l.fleetwide(reason, n, policy); message != "" {
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

// Said is what people say on the Node.
func Said(n *corev1.Node, now time.Time) *Hold {
	if remediations.Excluded(n) {
		return &Hold{Reason: remediations.ReasonExcluded, Message: fmt.Sprintf("the label %s=%s", remediations.ExcludeLabel, n.Labels[remediations.ExcludeLabel])}
	}
	if lifecycle.BreakGlassSet(n) {
		return &Hold{Reason: remediations.ReasonPaused, Message: fmt.Sprintf("%s is set (%s); `kubectl drydock resume %s` ends it", remediations.BreakGlassKey, lifecycle.BreakGlassWhy(n), n.Name)}
	}
	value, set := n.Annotations[remediations.PauseKey]
	if !set {
		return nil
	}
	p, err := remediations.ParsePause(value)
	h := &Hold{Reason: remediations.ReasonPaused, Message: strings.TrimSpace("paused " + p.Why)}
	switch {
	case err != nil:
		h.Message = err.Error()
	case !p.Until.IsZero() && !p.Until.After(now):
		return nil
	case !p.Until.IsZero():
		h.Until = &p.Until
	}
	return h
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

// fleetwide is what the ledger says of a hold that lies with the fleet, where it concerns the node; empty: nothing.
func (l *Ledger) fleetwide(reason remediations.Reason, n *corev1.Node, policy string) string {
	if l.Status == nil {
		return ""
	}
	switch reason { //nolint:exhaustive // the others concern every node
	case remediations.ReasonBlind:
		if l.Status.Blind != "" {
			return l.Status.Blind
		}
	case remediations.ReasonFleetUnhealthy:
		_, cluster := l.Status.Breakers[ledger.ScopeCluster]
		_, zone := l.Status.Breakers[zoneScope(n)]
		if !cluster && !zone {
			return ""
		}
	case remediations.ReasonPolicyFailing:
		if why := l.Status.Stopped[policy]; why != "" {
			return why
		}
		if !l.Whole.Failing(policy) {
			return ""
		}
	case remediations.ReasonControlPlaneBusy:
		if _, is := n.Labels["node-role.kubernetes.io/control-plane"]; !is {
			return ""
		}
	}
	return l.Status.Holds[reason]
}

func zoneScope(n *corev1.Node) string { return "zone/" + n.Labels[corev1.LabelTopologyZone] }

// Ill says why the breaker counts the node; empty: it does not.
func Ill(n *corev1.Node) string { return ill(n, Firing(n)) }

// ill says why the breaker counts the node; empty: it does not.
func ill(n *corev1.Node, alerts []remediations.Alert) string {
	switch {
	case unready(n):
		return "not Ready"
	case n.Labels[remediations.PhaseLabel] == string(remediations.PhaseExhausted):
		return "Exhausted"
	case len(alerts) > 0:
		return "alert " + alerts[0].Name
	}
	return ""
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
		Message: fmt.Sprintf("repair %s ran out of steps, and a person must look%s", r.ID, LeftWith(r)),
	}
}

// onceMended is what a person may do about that.
func onceMended(node string) string { return "once the node is fixed: kubectl drydock reset " + node }
