package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// providerOf takes nil for m if there is no Node. While a machine is replaced, its Node may be
// gone, and the record is in the ledger.
func (r *Roster) providerOf(l *ledger.Ledger, s ledger.Slot, m *Member) string {
	if i := slices.IndexFunc(l.Orphans, func(o ledger.Orphan) bool { return o.Record.ID == s.Repair && o.Record.Intent != nil }); i >= 0 {
		record := &l.Orphans[i].Record
		return r.config.ProviderOfIntent(record.Step.Name, record.Intent)
	}
	n := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: s.ProviderID}}
	if m != nil {
		n = m.Node
		if m.own != nil && m.own.ID == s.Repair {
			return r.providerOfRecord(m.own, n)
		}
	}
	step, _ := remediations.AttemptNamed(s.Repair, s.Attempt)
	return r.config.ProviderAhead(r.config.PolicyOf(s.Policy, n), step.Index, n)
}

// providerOfRecord prefers the intent's provider, because several may serve a step.
func (r *Roster) providerOfRecord(own *remediations.Record, n *corev1.Node) string {
	switch {
	case own == nil:
		return ""
	case own.Phase.InFlight() && own.Intent.Provider != "":
		return own.Intent.Provider
	}
	return r.config.ProviderAhead(r.config.PolicyOf(own.Policy, n), own.Step.Index, n)
}
