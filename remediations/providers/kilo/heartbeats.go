package kilo

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// alive keeps the candidates whose kubelets still renew their leases. So it refuses nodes without
// power. If all members of a location lose power, the location looks as if only its leader had
// failed. For most of a minute, the members are still Ready in Kubernetes, and Kilo counts them.
// The agents of such a location report no probe results that would show the outage.
//
// A kubelet renews its lease four times within the lease's duration. So a lease that is older than
// half of its duration has missed two renewals. After a power failure, a lease reaches this age
// before the alert can fire. blind is true if the leases could not be read.
func (m *Mesh) alive(ctx context.Context, moves []remediations.Move, refused map[string]string) (kept []remediations.Move, blind bool) {
	if len(moves) == 0 {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	// ResourceVersion "0" reads from the API server's own cache: one call is enough for any number
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

// overdue returns "" if the lease proves that the kubelet is alive. A lease from more than a minute
// in the future proves nothing.
func overdue(age, duration time.Duration) string {
	switch {
	case age >= duration/2:
		return fmt.Sprintf("its kubelet last renewed its lease %s ago", text.Duration(age.Truncate(time.Second)))
	case age < -leaseAhead:
		return fmt.Sprintf("its kubelet renewed its lease %s in the future; check the node's clock", text.Duration((-age).Truncate(time.Second)))
	}
	return ""
}
