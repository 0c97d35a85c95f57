package main

import (
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
)

// change is what a person may do about the hold; empty: wait, or look at what its sentence names.
func (s *sight) change(h *hold, policy string) string {
	node := s.node.Name
	switch h.Reason { //nolint:exhaustive // nobody can do anything at once about the others
	case noLeader:
		namespace, _, _ := strings.Cut(s.leader.Lease, "/")
		return "kubectl get pods -n " + namespace + " -l " + installedBy
	case remediations.RecordMalformed:
		return "kubectl drydock reset " + node
	case remediations.ReasonExcluded:
		return "kubectl label node " + node + " " + remediations.ExcludeLabel + "-"
	case remediations.Paused:
		return s.unpause(policy)
	case remediations.CordonedByOther:
		return "kubectl uncordon " + node
	case remediations.Silenced:
		if ids := s.silences(); len(ids) > 0 {
			return "amtool silence expire " + strings.Join(ids, " ")
		}
		return "end the silence in Alertmanager: amtool silence expire ID"
	case remediations.FleetUnhealthy, remediations.AtLimit, remediations.ControlPlaneBusy, remediations.Blind:
		return "kubectl drydock status says more"
	case remediations.NodeUnderRepair:
		return "kubectl drydock status, and kubectl drydock cancel NODE to end the other repair"
	case remediations.RepairsSpent, remediations.Cooldown:
		return "kubectl drydock history " + node + " -o wide says what was tried"
	case remediations.PolicyFailing:
		return "kubectl drydock reset --policy " + policy + ", once the cause is found"
	case remediations.AwaitingApproval:
		return "kubectl drydock approve " + node
	case remediations.Observing:
		return "mode: enforce for policy " + policy + " in Drydock's configuration"
	case remediations.ProviderAbsent:
		return "drydock check FILE says which provider is missing"
	}
	return ""
}

// unpause ends what people wrote on the node.
func (s *sight) unpause(policy string) string {
	a := s.node.Annotations
	_, paused := a[remediations.PauseKey]
	_, broken := a[remediations.BreakGlassKey]
	_, cancels := a[remediations.CancelKey]
	switch {
	case paused, broken:
		return "kubectl drydock resume " + s.node.Name
	case cancels:
		return "kubectl annotate node " + s.node.Name + " " + remediations.CancelKey + "-"
	}
	return "kubectl drydock repair " + s.node.Name + " --policy " + policy // the alert's last repair was cancelled
}

// silences are those of the node's alerts.
func (s *sight) silences() (ids []string) {
	if !s.asked {
		return nil
	}
	for _, r := range s.state.Word.Replicas {
		for _, a := range firing(s.node) {
			ids = append(ids, r.Alerts[a.Fingerprint].SilencedBy...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
