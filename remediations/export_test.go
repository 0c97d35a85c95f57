package remediations

// What the tests of the core ask that nobody else does. They stand outside of the package, as the scenes do that they share with the
// tests of the kinds of target.

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
