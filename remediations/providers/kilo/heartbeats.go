package kilo

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// alive keeps the candidates whose kubelets still renew their leases. A location whose members have
// all lost power looks like a location whose leader relays nothing. For most of a minute Kubernetes
// calls such members Ready and Kilo counts them. A kubelet renews its lease four times within the
// lease's duration, so after half of it two renewals are missing, which is before the alert can
// fire. The candidates' own probe results cannot show this, because a dark location reports none.
// blind: their leases could not be read.
func (m *Mesh) alive(ctx context.Context, moves []remediations.Move, refused map[string]string) (kept []remediations.Move, blind bool) {
	if len(moves) == 0 {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	// From the API server's own cache, as in Drydock's count of all leases: one call for any number
	// of candidates.
	all, err := m.options.Leases.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		for _, move := range moves {
			refused[move.To] = "listing the nodes' leases: " + clip(err.Error())
		}
		return nil, true
	}
	now := m.options.Now()
	why := map[string]string{}
	for _, l := range all.Items {
		if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		why[l.Name] = overdue(now.Sub(l.Spec.RenewTime.Time), time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second)
	}
	for _, move := range moves {
		text, known := why[move.To]
		switch {
		case !known:
			refused[move.To] = "its kubelet has no lease"
		case text != "":
			refused[move.To] = text
		default:
			kept = append(kept, move)
		}
	}
	return kept, false
}

// overdue returns why a lease of that age is not a sign of life; empty: it is one. A clock that is
// ahead by more than a minute makes the lease useless.
func overdue(age, duration time.Duration) string {
	switch {
	case age >= duration/2:
		return fmt.Sprintf("its kubelet last renewed its lease %s ago", text.Duration(age.Truncate(time.Second)))
	case age < -leaseAhead:
		return fmt.Sprintf("its kubelet's lease is of a time %s from now", text.Duration((-age).Truncate(time.Second)))
	}
	return ""
}
