package remediations

// Reason is why a repair is held: a closed list, in the order in which the guards are asked.
type Reason string

const (
	ReasonRecordMalformed  Reason = "RecordMalformed"
	ReasonExcluded         Reason = "Excluded"
	ReasonPaused           Reason = "Paused"
	ReasonNodeLeaving      Reason = "NodeLeaving"
	ReasonCordonedByOther  Reason = "CordonedByOther"
	ReasonAlertUnconfirmed Reason = "AlertUnconfirmed"
	ReasonBlind            Reason = "Blind"
	// ReasonWritesDenied: the API server refuses what Drydock writes on Nodes, or on this one.
	ReasonWritesDenied     Reason = "WritesDenied"
	ReasonStoreWentBack    Reason = "StoreWentBack"
	ReasonSilenced         Reason = "Silenced"
	ReasonInhibited        Reason = "Inhibited"
	ReasonAlertResolved    Reason = "AlertResolved"
	ReasonNotWitnessed     Reason = "NotWitnessed"
	ReasonTooYoung         Reason = "TooYoung"
	ReasonFleetUnhealthy   Reason = "FleetUnhealthy"
	ReasonOutsideWindow    Reason = "OutsideWindow"
	ReasonNodeUnderRepair  Reason = "NodeUnderRepair"
	ReasonCooldown         Reason = "Cooldown"
	ReasonRepairsSpent     Reason = "RepairsSpent"
	ReasonPolicyFailing    Reason = "PolicyFailing"
	ReasonControlPlaneBusy Reason = "ControlPlaneBusy"
	// ReasonClusterWide: the step would change the whole cluster, and too few nodes have the fault; or another one does so.
	ReasonClusterWide Reason = "ClusterWide"
	ReasonAtLimit     Reason = "AtLimit"
	// ReasonCommonCause: many nodes got the same fault at once, and one of them is repaired first.
	ReasonCommonCause      Reason = "CommonCause"
	ReasonAwaitingApproval Reason = "AwaitingApproval"
	ReasonObserving        Reason = "Observing"

	// ReasonCallWithheld is no guard: the last look right before the call withheld it, for what no guard speaks of. The intent grew
	// too old, this process stops leading, or what the intent rested on is there no more.
	ReasonCallWithheld Reason = "CallWithheld"
	// ReasonProviderAbsent is no guard: no step of the plan can be carried out by this installation, or the provider answers
	// beforehand that it would refuse. Whether that is the node's or the fleet's each says for itself.
	ReasonProviderAbsent Reason = "ProviderAbsent"
	// ReasonProviderUnreachable is no guard: the provider cannot be asked about this machine or, which is the fleet's, about any; or
	// calls could not be made again and again. The step waits; it costs no attempt.
	ReasonProviderUnreachable Reason = "ProviderUnreachable"
	// ReasonSidecarHeld and ReasonSidecarUnknown speak of a pod, and are asked last before Observing: its owner keeps the sidecar as it
	// is on purpose, or is at work on it; or nothing can be said of it, which is never a fault.
	ReasonSidecarHeld    Reason = "SidecarHeld"
	ReasonSidecarUnknown Reason = "SidecarUnknown"
	// ReasonLeaderHeld and ReasonLeaderUnknown speak of a location of the mesh, and are asked where those of a pod are: its leader is not
	// to be moved, or nothing there can take its place; or nothing can be said of it.
	ReasonLeaderHeld    Reason = "LeaderHeld"
	ReasonLeaderUnknown Reason = "LeaderUnknown"
	// ReasonAPIServerUnknown speaks of the API servers: nothing can be said of any that is left, which is never a fault.
	ReasonAPIServerUnknown Reason = "APIServerUnknown"
)

// Reasons is the closed list, in guard order, for metrics and docs.
var Reasons = []Reason{
	ReasonRecordMalformed, ReasonExcluded, ReasonPaused, ReasonNodeLeaving, ReasonCordonedByOther, ReasonAlertUnconfirmed, ReasonBlind, ReasonWritesDenied, ReasonStoreWentBack, ReasonSilenced, ReasonInhibited,
	ReasonAlertResolved, ReasonNotWitnessed, ReasonTooYoung, ReasonFleetUnhealthy, ReasonOutsideWindow, ReasonNodeUnderRepair, ReasonCooldown, ReasonRepairsSpent, ReasonPolicyFailing,
	ReasonControlPlaneBusy, ReasonClusterWide, ReasonAtLimit, ReasonCommonCause, ReasonAwaitingApproval, ReasonObserving, ReasonCallWithheld, ReasonProviderAbsent, ReasonProviderUnreachable, ReasonSidecarHeld, ReasonSidecarUnknown,
	ReasonLeaderHeld, ReasonLeaderUnknown, ReasonAPIServerUnknown,
}

// Fleetwide says that the reason lies with the fleet, the clock, the configuration or the alert source, and not with
// the node or its alert. A thousand nodes held by one such cause are told once, in the ledger, and not by a thousand
// writes on Nodes.
func (r Reason) Fleetwide() bool {
	switch r {
	case ReasonBlind, ReasonWritesDenied, ReasonStoreWentBack, ReasonFleetUnhealthy, ReasonCommonCause, ReasonOutsideWindow, ReasonPolicyFailing, ReasonControlPlaneBusy, ReasonAtLimit:
		return true
	case ReasonRecordMalformed, ReasonExcluded, ReasonPaused, ReasonNodeLeaving, ReasonCordonedByOther, ReasonAlertUnconfirmed, ReasonSilenced, ReasonInhibited,
		ReasonAlertResolved, ReasonNotWitnessed, ReasonTooYoung, ReasonNodeUnderRepair, ReasonCooldown, ReasonRepairsSpent, ReasonAwaitingApproval, ReasonObserving,
		ReasonCallWithheld, ReasonProviderAbsent, ReasonProviderUnreachable, ReasonSidecarHeld, ReasonSidecarUnknown, ReasonLeaderHeld, ReasonLeaderUnknown, ReasonAPIServerUnknown, ReasonClusterWide:
	}
	return false
}
