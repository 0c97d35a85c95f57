package remediations

// This file exports names that only tests need. The tests are in another package, because they use
// package scene, which imports this one.

const (
	MaxAlertLabelBytes = maxAlertLabelBytes
	MaxBefore          = maxBefore
	MaxEvidence        = maxEvidence
	MaxHistory         = maxHistory
	MaxHistoryBytes    = maxHistoryBytes
	MaxObservedBytes   = maxObservedBytes
	MaxProviderName    = maxProviderName
	RequestProofFor    = requestProofFor
	UnknownWait        = unknownWait
)

var (
	Clip          = clip
	NextOpening   = nextOpening
	PromoteLeader = promoteLeader
	Reboot        = reboot
	Replace       = replace
)
