package remediations

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What the tests of the core ask that nobody else does. They stand outside of the package, as the scenes do that they share with the
// tests of the kinds of target.

const (
	GpuProduct         = gpuProduct
	GpuReplicas        = gpuReplicas
	GpuResource        = gpuResource
	GpuSharing         = gpuSharing
	LeaseAhead         = leaseAhead
	LedgerMoves        = ledgerMoves
	LedgerOrphans      = ledgerOrphans
	LedgerRepairs      = ledgerRepairs
	LedgerSlots        = ledgerSlots
	LedgerStatusKey    = ledgerStatus
	LedgerVersion      = ledgerVersion
	LedgerWide         = ledgerWide
	MaxAlertLabelBytes = maxAlertLabelBytes
	MaxBefore          = maxBefore
	MaxEvidence        = maxEvidence
	MaxHistory         = maxHistory
	MaxHistoryBytes    = maxHistoryBytes
	MaxObservedBytes   = maxObservedBytes
	MaxProviderName    = maxProviderName
	MigStrategy        = migStrategy
	RequestProofFor    = requestProofFor
	SeenFor            = seenFor
	UnknownWait        = unknownWait
	UnseenMost         = unseenMost
	WideApart          = wideApart
	WitnessAgain       = witnessAgain
)

var (
	Clip                = clip
	GpusSay             = gpusSay
	GuardAtLimit        = atLimit
	GuardCancelled      = cancelled
	GuardFleetUnhealthy = fleetUnhealthy
	NextOpening         = nextOpening
	NodeSlot            = nodeSlot
	Opened              = opened
	PromoteLeader       = promoteLeader
	Reboot              = reboot
	Replace             = replace
	SidecarsInFlight    = sidecarsInFlight
)

func (x *Fleet) BreakersFor(a0 string) []string { return x.breakersFor(a0) }

func (x *Fleet) Busy(a0 string, a1 string) bool { return x.busy(a0, a1) }

func (x *Ledger) LastWide(a0 string) Begun { return x.lastWide(a0) }

func (x *Candidate) Sick() int { return x.sick() }

func (x *Config) Names(a0 map[string]string, a1 string) bool { return x.names(a0, a1) }

func (x *Fleet) AtLimit(a0 *Config, a1 *corev1.Node, a2 bool) string { return x.atLimit(a0, a1, a2) }

func (x *Fleet) ControlPlaneBusy(a0 *corev1.Node) string { return x.controlPlaneBusy(a0) }

func (x *Ledger) Begun(a0 string, a1 string, a2 time.Time, a3 time.Duration) (count int, oldest time.Time) {
	return x.begun(a0, a1, a2, a3)
}

func (x *Ledger) Prune(a0 *Config, a1 time.Time) { x.prune(a0, a1) }

func (x *Ledger) Replacing(a0 *corev1.Node) *Orphan { return x.replacing(a0) }

func (x *Fleet) LocationRepairOn(a0 string) string { return x.locationRepairOn(a0) }

func (x *Record) Validate() error { return x.validate(nil) }

func (x Sign) Ask(a0 *corev1.Node) Testimony { return x.ask(a0) }

func (x *Word) HeardAt() time.Time { return x.heardAt() }

func (x *Fleet) Occupied() map[string]place { return x.occupied }

func (x *Fleet) Leading() map[string]leading { return x.leading }

func (x *Fleet) Unhealthy() int { return x.total.unhealthy }

func (x *Fleet) WithoutRoster() { x.roster = nil }
