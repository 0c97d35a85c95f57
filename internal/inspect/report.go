package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/remediations"
)

// Report reads the input of a report about the period of this length that ends now. Only unreadable
// Nodes are an error. If other input is missing, the input says so.
func (r *Reader) Report(ctx context.Context, of Scope, length time.Duration) (report.Input, error) {
	now := r.Now()
	in := report.Input{From: now.Add(-length), To: now, Of: of.words()}
	known := false
	err := r.each(ctx, of, func(n *corev1.Node) {
		one := report.Node{Name: n.Name, Annotations: map[string]string{}}
		for key, value := range n.Annotations {
			if remediations.Owned(key) {
				one.Annotations[key], known = value, true
			}
		}
		in.Nodes = append(in.Nodes, one)
	})
	if err != nil {
		return report.Input{}, err
	}
	l, err := r.ReadLedger(ctx)
	if err != nil {
		return report.Input{}, err
	}
	if l.Missing && !known {
		return report.Input{}, fmt.Errorf("no Drydock was found: %s, and no node has anything that Drydock wrote; if its ledger is in another namespace or has another name, give -n and --ledger", l.Problem)
	}
	in.Ledger, in.LedgerProblem = l.Whole, l.Problem
	return in, nil
}

func (s Scope) words() string {
	if s.Selector != "" {
		return "nodes with " + s.Selector
	}
	return strings.Join(s.Names, ", ")
}
