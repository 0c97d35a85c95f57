package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
)

// Scope selects Nodes by names, by a label selector, or all. Well includes healthy Nodes without a
// repair.
type Scope struct {
	Names    []string
	Selector string
	Well     bool
}

func (s Scope) whole() bool { return len(s.Names) == 0 && s.Selector == "" }

func (r *Reader) each(ctx context.Context, s Scope, do func(*corev1.Node)) error {
	for _, name := range s.Names {
		n, err := r.Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return Asking(err, "reading node "+name, name)
		}
		do(n)
	}
	if len(s.Names) > 0 {
		return nil
	}
	return r.EachNode(ctx, metav1.ListOptions{LabelSelector: s.Selector}, func(n *corev1.Node) error {
		do(n)
		return nil
	})
}

func concerns(n *corev1.Node) bool {
	if _, labelled := n.Labels[remediations.PhaseLabel]; labelled || unready(n) || len(firing(n)) > 0 {
		return true
	}
	for key := range n.Annotations {
		if strings.HasPrefix(key, remediations.RepairPrefix) {
			return true
		}
	}
	return false
}

// add adds a row of a healthy node without a repair only if the scope asks for it.
func (s *Status) add(n *corev1.Node, of Scope, now time.Time) {
	rows := s.Ledger.RepairsOf(n, now)
	if of.whole() {
		s.CountIll(n, now)
	}
	s.CountParked(n, now)
	s.CountPaused(n, now)
	if rows[0].Idle() && !of.Well && len(of.Names) == 0 && rows[0].Ill == "" {
		return
	}
	s.Repairs = append(s.Repairs, rows...)
}

// CountParked adds the Node to s.Parked if it is drained and waits for its next step.
func (s *Status) CountParked(n *corev1.Node, now time.Time) {
	value, ok := n.Annotations[remediations.NodeRepairKey]
	if !ok || !n.Spec.Unschedulable {
		return
	}
	if r, err := remediations.DecodeRecordOf(remediations.NodeRepairKey, value); err == nil && fleet.Parked(n, r, now) {
		s.Parked = append(s.Parked, n.Name)
		at := place{node: n.Name, zones: []string{s.Ledger.Zone(n)}, pools: []string{s.Ledger.Pool(n)}}
		if r.Intent != nil { // a node that was relabelled since its repair began counts in the old and the new zone and pool
			at.zones, at.pools = append(at.zones, r.Intent.Zone), append(at.pools, r.Intent.Pool)
		}
		s.parked = append(s.parked, at)
	}
}

// place is a drained Node that waits for its next step. It counts against the limits of the zones
// and pools in the other fields.
type place struct {
	node         string
	zones, pools []string
}

// CountIll adds an unhealthy Node to s.Ill, under each breaker that counts the Node and is not
// closed.
func (s *Status) CountIll(n *corev1.Node, now time.Time) {
	behind := s.Ledger.breakersOver(n)
	if len(behind) == 0 || !s.Ledger.Counts(n, now) {
		return
	}
	why := ill(n, firing(n))
	if why == "" {
		return
	}
	if s.Ill == nil {
		s.Ill = map[string][]string{}
	}
	for _, scope := range behind {
		s.Ill[scope] = append(s.Ill[scope], fmt.Sprintf("%s (%s)", n.Name, why))
	}
}

// RepairsOf returns one row for each record, and one for an alert that waits. If there is neither,
// one row says whether the node is unhealthy.
func (l *Ledger) RepairsOf(n *corev1.Node, now time.Time) []Repair {
	alerts := firing(n)
	rows := RepairsOn(n)
	for i := range rows {
		if r := rows[i].Record; r != nil && r.Phase == remediations.PhasePending {
			rows[i].Hold = l.HoldNow(n, r.Policy, r, now)
		}
	}
	row := Repair{Node: n.Name, Target: "node", Ill: ill(n, alerts)}
	alerts = slices.DeleteFunc(alerts, func(a remediations.Alert) bool {
		return slices.ContainsFunc(rows, func(r Repair) bool {
			return r.Record != nil && (r.Record.Cause.Alert == a.Fingerprint || slices.Contains(r.Record.Also, a.Fingerprint))
		})
	})
	switch {
	case slices.ContainsFunc(rows, func(r Repair) bool { return r.Target == row.Target }):
	case len(alerts) > 0:
		a := alerts[0]
		row.Alert, row.Hold = &Waiting{a.Name, a.Policy, a.Fingerprint, a.ReceivedAt, endedFor(n, a)}, l.HoldNow(n, a.Policy, nil, now)
		rows = append(rows, row)
	case len(rows) == 0:
		if row.Hold = l.Said(n, now); row.Ill != "" && l.Status != nil {
			row.Hold = cmp.Or(l.Unwritten(n), row.Hold)
		}
		rows = append(rows, row)
	}
	return rows
}

// endedFor returns "" if no repair has ended since the alert began to fire.
func endedFor(n *corev1.Node, a remediations.Alert) string {
	for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
		if e.Cause != a.Fingerprint || a.StartsAt.After(e.Ended) {
			continue
		}
		if e.Would != nil {
			return fmt.Sprintf("repair %s would have issued %s at %s, but policy %s only observed", e.ID, e.Would.Step, Stamp(e.Would.At), e.Policy)
		}
		return fmt.Sprintf("repair %s ended as %s at %s", e.ID, e.Outcome, Stamp(e.Ended))
	}
	return ""
}

// Idle reports whether the row has neither a record nor an alert.
func (r Repair) Idle() bool { return r.Record == nil && r.Problem == "" && r.Alert == nil }
