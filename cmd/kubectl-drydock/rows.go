package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
)

// scope is which Nodes the status is about: those of the names, or of the selector, or all. well: also those that nothing concerns.
type scope struct {
	names    []string
	selector string
	well     bool
}

func (s scope) whole() bool { return len(s.names) == 0 && s.selector == "" }

// nodes calls do for each Node of the scope.
func (s scope) nodes(ctx context.Context, c client, do func(*corev1.Node)) error {
	for _, name := range s.names {
		n, err := c.Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return asking(err, "reading node "+name, name)
		}
		do(n)
	}
	if len(s.names) > 0 {
		return nil
	}
	return eachNode(ctx, c, metav1.ListOptions{LabelSelector: s.selector}, func(n *corev1.Node) error {
		do(n)
		return nil
	})
}

// concerns says that a Node has something to show: a record, an alert of a policy, or that it is not Ready.
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

// add adds the Node's rows: each record, else the alert with which it waits, else that it is ill behind a breaker.
func (s *status) add(n *corev1.Node, of scope, now time.Time) {
	alerts := firing(n)
	why := ill(n, alerts)
	behind := s.breakersOver(n)
	if of.whole() && why != "" {
		for _, scope := range behind {
			if s.Ill == nil {
				s.Ill = map[string][]string{}
			}
			s.Ill[scope] = append(s.Ill[scope], fmt.Sprintf("%s (%s)", n.Name, why))
		}
	}
	rows := repairsOn(n)
	for i := range rows {
		if r := rows[i].Record; r != nil && r.Phase == remediations.Pending {
			rows[i].Hold = s.Ledger.holdNow(n, r.Policy, r, now)
		}
	}
	row := repair{Node: n.Name, Target: "node", Ill: why}
	alerts = slices.DeleteFunc(alerts, func(a remediations.Alert) bool {
		return slices.ContainsFunc(rows, func(r repair) bool {
			return r.Record != nil && (r.Record.Cause.Alert == a.Fingerprint || slices.Contains(r.Record.Also, a.Fingerprint))
		})
	})
	switch {
	case slices.ContainsFunc(rows, func(r repair) bool { return r.Target == row.Target }):
	case len(alerts) > 0:
		a := alerts[0]
		row.Alert, row.Hold = &waiting{a.Name, a.Policy, a.Fingerprint, a.ReceivedAt}, s.Ledger.holdNow(n, a.Policy, nil, now)
		rows = append(rows, row)
	case len(rows) == 0 && (of.well || len(of.names) > 0 || (why != "" && len(behind) > 0)):
		row.Hold = said(n, now)
		rows = append(rows, row)
	}
	s.Repairs = append(s.Repairs, rows...)
}

// breakersOver are the breakers that are not closed and that the Node belongs to.
func (s *status) breakersOver(n *corev1.Node) (scopes []string) {
	if s.Ledger.Status == nil {
		return nil
	}
	for _, scope := range []string{remediations.ScopeCluster, zoneScope(n)} {
		if _, open := s.Ledger.Status.Breakers[scope]; open {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// waitingRow shows a node without a record.
func (r repair) waitingRow(now time.Time, wide bool) []string {
	var policy, phase, since, why, hold, until, message string
	switch {
	case r.Alert != nil:
		policy, phase, since, why = r.Alert.Policy, "Waiting", age(now, r.Alert.ReceivedAt), "alert/"+r.Alert.Fingerprint
		message = "alert " + r.Alert.Name + "; no repair was begun yet"
	case r.Ill != "":
		phase, message = "Unhealthy", r.Ill
	}
	if r.Hold != nil {
		hold, message, until = string(r.Hold.Reason), r.Hold.Message, yetToCome(r.Hold.Until, now)
	}
	row := cells(r.Node, "", policy, phase, "", since, hold)
	if wide {
		row = append(row, cells(until, why, message)...)
	}
	return row
}

// yetToCome is a time in the future; empty: it has passed, or there is none.
func yetToCome(at *time.Time, now time.Time) string {
	if at == nil || at.IsZero() || !at.After(now) {
		return ""
	}
	return stamp(*at)
}
