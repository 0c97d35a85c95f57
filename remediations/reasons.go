package remediations

// Reason is the reason why a repair is held. Most reasons belong to a guard of package lifecycle
// and are listed in the order of the guards.
type Reason string

const (
	ReasonRecordMalformed  Reason = "RecordMalformed"
	ReasonExcluded         Reason = "Excluded"
	ReasonPaused           Reason = "Paused"
	ReasonNodeLeaving      Reason = "NodeLeaving"
	ReasonCordonedByOther  Reason = "CordonedByOther"
	ReasonAlertUnconfirmed Reason = "AlertUnconfirmed"
	ReasonBlind            Reason = "Blind"
	// ReasonWritesDenied means that the API server refuses Drydock's writes on Nodes, on all of them
	// or on this one.
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
	// ReasonClusterWide means that the step would change the whole cluster, while too few nodes have
	// the fault or another repair changes the cluster.
	ReasonClusterWide Reason = "ClusterWide"
	ReasonAtLimit     Reason = "AtLimit"
	// ReasonCommonCause means that several nodes have got the same alert within a short time.
	// Drydock first repairs one of these nodes, and holds the others.
	ReasonCommonCause      Reason = "CommonCause"
	ReasonAwaitingApproval Reason = "AwaitingApproval"
	ReasonObserving        Reason = "Observing"

	// The reasons below do not belong to a guard.

	// ReasonCallWithheld means that the last check before the call stopped the call. For example,
	// the intent was too old or missing, or this process was no longer the leader. If a guard would
	// find the same, for example a new pause, the record has that guard's reason instead.
	ReasonCallWithheld Reason = "CallWithheld"
	// ReasonProviderAbsent means that this installation cannot carry out any step of the plan, or
	// that the provider would refuse the step. The message says whether this concerns one node or
	// all.
	ReasonProviderAbsent Reason = "ProviderAbsent"
	// ReasonProviderUnreachable means that the provider gives no answer about this machine or about
	// any machine, or that several calls in a row failed. The step waits, and no attempt is used up.
	ReasonProviderUnreachable Reason = "ProviderUnreachable"
	// ReasonSidecarHeld means that the owner of a sidecar keeps it as it is, or works on it.
	ReasonSidecarHeld Reason = "SidecarHeld"
	// ReasonSidecarUnknown means that the state of a sidecar is unknown, which is never a fault.
	ReasonSidecarUnknown Reason = "SidecarUnknown"
	// ReasonLeaderHeld means that the leader of a mesh location must not be moved, or that no other
	// node can replace it.
	ReasonLeaderHeld Reason = "LeaderHeld"
	// ReasonLeaderUnknown means that the state of a mesh location is unknown.
	ReasonLeaderUnknown Reason = "LeaderUnknown"
	// ReasonAPIServerUnknown means that the state of all remaining API servers is unknown, which is
	// never a fault.
	ReasonAPIServerUnknown Reason = "APIServerUnknown"
)

// Reasons lists every Reason, for metrics and documentation. Those with a guard come first, in the
// order of the guards.
var Reasons = []Reason{
	ReasonRecordMalformed, ReasonExcluded, ReasonPaused, ReasonNodeLeaving, ReasonCordonedByOther, ReasonAlertUnconfirmed, ReasonBlind, ReasonWritesDenied, ReasonStoreWentBack, ReasonSilenced, ReasonInhibited,
	ReasonAlertResolved, ReasonNotWitnessed, ReasonTooYoung, ReasonFleetUnhealthy, ReasonOutsideWindow, ReasonNodeUnderRepair, ReasonCooldown, ReasonRepairsSpent, ReasonPolicyFailing,
	ReasonControlPlaneBusy, ReasonClusterWide, ReasonAtLimit, ReasonCommonCause, ReasonAwaitingApproval, ReasonObserving, ReasonCallWithheld, ReasonProviderAbsent, ReasonProviderUnreachable, ReasonSidecarHeld, ReasonSidecarUnknown,
	ReasonLeaderHeld, ReasonLeaderUnknown, ReasonAPIServerUnknown,
}

// Fleetwide reports whether the reason concerns all nodes, for example an outage of Alertmanager.
// It may hold a thousand repairs at once, so it is written once into the ledger, and not on every
// Node.
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
