package remediations

// Reason is why a repair is held: a closed list, in the order in which the guards are asked.
type Reason string

const (
	RecordMalformed  Reason = "RecordMalformed"
	ReasonExcluded   Reason = "Excluded"
	Paused           Reason = "Paused"
	NodeLeaving      Reason = "NodeLeaving"
	CordonedByOther  Reason = "CordonedByOther"
	AlertUnconfirmed Reason = "AlertUnconfirmed"
	Blind            Reason = "Blind"
	Silenced         Reason = "Silenced"
	Inhibited        Reason = "Inhibited"
	AlertResolved    Reason = "AlertResolved"
	NotWitnessed     Reason = "NotWitnessed"
	TooYoung         Reason = "TooYoung"
	FleetUnhealthy   Reason = "FleetUnhealthy"
	OutsideWindow    Reason = "OutsideWindow"
	NodeUnderRepair  Reason = "NodeUnderRepair"
	Cooldown         Reason = "Cooldown"
	RepairsSpent     Reason = "RepairsSpent"
	PolicyFailing    Reason = "PolicyFailing"
	ControlPlaneBusy Reason = "ControlPlaneBusy"
	// ReasonClusterWide: the step would change the whole cluster, and too few nodes have the fault; or another one does so.
	ReasonClusterWide Reason = "ClusterWide"
	AtLimit           Reason = "AtLimit"
	AwaitingApproval  Reason = "AwaitingApproval"
	Observing         Reason = "Observing"

	// CallWithheld is no guard: the last look right before the call withheld it, for what no guard speaks of. The intent grew
	// too old, this process stops leading, or what the intent rested on is there no more.
	CallWithheld Reason = "CallWithheld"
	// ProviderAbsent is no guard: no step of the plan can be carried out by this installation, or the provider says
	// beforehand that it would refuse. Whether that is the node's or the fleet's each says for itself.
	ProviderAbsent Reason = "ProviderAbsent"
	// SidecarHeld and SidecarUnknown speak of a pod, and are asked last before Observing: its owner keeps the sidecar as it
	// is on purpose, or is at work on it; or nothing can be said of it, which is never a fault.
	SidecarHeld    Reason = "SidecarHeld"
	SidecarUnknown Reason = "SidecarUnknown"
	// LeaderHeld and LeaderUnknown speak of a location of the mesh, and are asked where those of a pod are: its leader is not
	// to be moved, or nothing there can take its place; or nothing can be said of it.
	LeaderHeld    Reason = "LeaderHeld"
	LeaderUnknown Reason = "LeaderUnknown"
	// APIServerUnknown speaks of the API servers: nothing can be said of any that is left, which is never a fault.
	APIServerUnknown Reason = "APIServerUnknown"
)

// Reasons is the closed list, in guard order, for metrics and docs.
var Reasons = []Reason{
	RecordMalformed, ReasonExcluded, Paused, NodeLeaving, CordonedByOther, AlertUnconfirmed, Blind, Silenced, Inhibited,
	AlertResolved, NotWitnessed, TooYoung, FleetUnhealthy, OutsideWindow, NodeUnderRepair, Cooldown, RepairsSpent, PolicyFailing,
	ControlPlaneBusy, ReasonClusterWide, AtLimit, AwaitingApproval, Observing, CallWithheld, ProviderAbsent, SidecarHeld, SidecarUnknown,
	LeaderHeld, LeaderUnknown, APIServerUnknown,
}

// Fleetwide says that the reason lies with the fleet, the clock, the configuration or the alert source, and not with
// the node or its alert. A thousand nodes held by one such cause are told once, in the ledger, and not by a thousand
// writes on Nodes.
func (r Reason) Fleetwide() bool {
	switch r {
	case Blind, FleetUnhealthy, OutsideWindow, PolicyFailing, ControlPlaneBusy, AtLimit:
		return true
	case RecordMalformed, ReasonExcluded, Paused, NodeLeaving, CordonedByOther, AlertUnconfirmed, Silenced, Inhibited,
		AlertResolved, NotWitnessed, TooYoung, NodeUnderRepair, Cooldown, RepairsSpent, AwaitingApproval, Observing,
		CallWithheld, ProviderAbsent, SidecarHeld, SidecarUnknown, LeaderHeld, LeaderUnknown, APIServerUnknown, ReasonClusterWide:
	}
	return false
}
