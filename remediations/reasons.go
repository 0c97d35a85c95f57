package remediations

// Reason is why a repair is held. It is a closed list, in the order of the guards.
type Reason string

const (
	ReasonRecordMalformed  Reason = "RecordMalformed"
	ReasonExcluded         Reason = "Excluded"
	ReasonPaused           Reason = "Paused"
	ReasonNodeLeaving      Reason = "NodeLeaving"
	ReasonCordonedByOther  Reason = "CordonedByOther"
	ReasonAlertUnconfirmed Reason = "AlertUnconfirmed"
	ReasonBlind            Reason = "Blind"
	// ReasonWritesDenied: the API server refuses Drydock's writes on all Nodes, or on this one.
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
	// ReasonClusterWide: the step would change the whole cluster, and too few nodes have the fault,
	// or another repair changes the cluster.
	ReasonClusterWide Reason = "ClusterWide"
	ReasonAtLimit     Reason = "AtLimit"
	// ReasonCommonCause: many nodes got the same fault at once. Drydock repairs one of them first.
	ReasonCommonCause      Reason = "CommonCause"
	ReasonAwaitingApproval Reason = "AwaitingApproval"
	ReasonObserving        Reason = "Observing"

	// ReasonCallWithheld does not come from a guard. The last look right before the call withheld
	// the call for a reason without a guard: the intent is too old, this process stops leading, or
	// what the intent depends on no longer exists.
	ReasonCallWithheld Reason = "CallWithheld"
	// ReasonProviderAbsent does not come from a guard. This installation cannot carry out any step
	// of the plan, or the provider answers that it would refuse. The message says whether the node
	// or the fleet is concerned.
	ReasonProviderAbsent Reason = "ProviderAbsent"
	// ReasonProviderUnreachable does not come from a guard. The provider cannot be asked about this
	// machine or any machine (then the reason is fleet-wide), or calls failed repeatedly. The step
	// waits; this costs no attempt.
	ReasonProviderUnreachable Reason = "ProviderUnreachable"
	// ReasonSidecarHeld and ReasonSidecarUnknown are about a pod. Their guards are the last before
	// Observing. Held: the owner keeps the sidecar as it is, or works on it. Unknown: its state is
	// unknown, which is never a fault.
	ReasonSidecarHeld    Reason = "SidecarHeld"
	ReasonSidecarUnknown Reason = "SidecarUnknown"
	// ReasonLeaderHeld and ReasonLeaderUnknown are about a location of the mesh. Their guards have
	// the same place as those of a pod. Held: the leader must not be moved, or no node can replace
	// it. Unknown: the location's state is unknown.
	ReasonLeaderHeld    Reason = "LeaderHeld"
	ReasonLeaderUnknown Reason = "LeaderUnknown"
	// ReasonAPIServerUnknown: the state of all remaining API servers is unknown, which is never a
	// fault.
	ReasonAPIServerUnknown Reason = "APIServerUnknown"
)

// Reasons is the closed list, in the order of the guards, for metrics and documentation.
var Reasons = []Reason{
	ReasonRecordMalformed, ReasonExcluded, ReasonPaused, ReasonNodeLeaving, ReasonCordonedByOther, ReasonAlertUnconfirmed, ReasonBlind, ReasonWritesDenied, ReasonStoreWentBack, ReasonSilenced, ReasonInhibited,
	ReasonAlertResolved, ReasonNotWitnessed, ReasonTooYoung, ReasonFleetUnhealthy, ReasonOutsideWindow, ReasonNodeUnderRepair, ReasonCooldown, ReasonRepairsSpent, ReasonPolicyFailing,
	ReasonControlPlaneBusy, ReasonClusterWide, ReasonAtLimit, ReasonCommonCause, ReasonAwaitingApproval, ReasonObserving, ReasonCallWithheld, ReasonProviderAbsent, ReasonProviderUnreachable, ReasonSidecarHeld, ReasonSidecarUnknown,
	ReasonLeaderHeld, ReasonLeaderUnknown, ReasonAPIServerUnknown,
}

// Fleetwide reports whether the cause lies in the fleet, the clock, the configuration or the alert
// source, and not in the node or its alert. If one such cause holds a thousand nodes, the ledger
// records it once, instead of a thousand writes on Nodes.
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
