package remediations

// Exports that only the tests need. The tests are outside the package, because they share the
// scenes with the tests of the kinds of target.

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
