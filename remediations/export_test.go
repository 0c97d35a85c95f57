package remediations

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What the tests of the core ask that nobody else does. They stand outside of the package, as the scenes do that they share with the
// tests of the kinds of target.

const (
	AlsoMost           = alsoMost
	AskEvery           = askEvery
	GpuProduct         = gpuProduct
	GpuReplicas        = gpuReplicas
	GpuResource        = gpuResource
	GpuSharing         = gpuSharing
	LeaseAgain         = leaseAgain
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
	MaxProviderName    = maxProviderName
	MigStrategy        = migStrategy
	PassedWhy          = passedWhy
	RefusedFor         = refusedFor
	RequestProofFor    = requestProofFor
	SeenFor            = seenFor
	SurveyFor          = surveyFor
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
	KindOf              = kindOf
	NextOpening         = nextOpening
	NodeSlot            = nodeSlot
	Opened              = opened
	PromoteLeader       = promoteLeader
	Reboot              = reboot
	Replace             = replace
	SidecarsInFlight    = sidecarsInFlight
	StillWitnessed      = stillWitnessed
	Weigh               = weigh
)

func (x *Fleet) BreakersFor(a0 string) []string { return x.breakersFor(a0) }

func (x *Fleet) Busy(a0 string, a1 string) bool { return x.busy(a0, a1) }

func (x *Ledger) LastWide(a0 string) Begun { return x.lastWide(a0) }

func (x *Candidate) Sick() int { return x.sick() }

func (x *Config) Names(a0 map[string]string, a1 string) bool { return x.names(a0, a1) }

func (x *Fleet) AtLimit(a0 *Config, a1 *corev1.Node, a2 bool) string { return x.atLimit(a0, a1, a2) }

func (x *Fleet) ControlPlaneBusy(a0 *corev1.Node) string { return x.controlPlaneBusy(a0) }

func (x *State) Remember(a0 *Decision) { x.remember(a0) }

func (x *Ledger) UnseenIn(a0 time.Time, a1 time.Time) time.Duration { return x.unseen(a0, a1) }

func (x *Ledger) Begun(a0 string, a1 string, a2 time.Time, a3 time.Duration) (count int, oldest time.Time) {
	return x.begun(a0, a1, a2, a3)
}

func (x *Ledger) Prune(a0 *Config, a1 time.Time) { x.prune(a0, a1) }

func (x *Ledger) Replacing(a0 *corev1.Node) *Orphan { return x.replacing(a0) }

func (x *Fleet) LocationRepairOn(a0 string) string { return x.locationRepairOn(a0) }

func (x *State) Policy() *Policy { return x.policy() }

func (x *Lease) Fresh() bool { return x.fresh() }

func (x *State) Proven() (bool, string) { return x.proven() }

func (x *Policy) WaitOf(a0 StepRef) time.Duration { return x.waitOf(a0) }

func (x *Record) Drained() bool { return x.drained() }

func (x *Record) Validate() error { return x.validate() }

func (x *Survey) BeforeOf(a0 StepOn) Before { return x.before(a0) }

func (x *State) Follow(a0 *Decision, a1 time.Time) { x.follow(a0, a1) }

func (x *State) SurveyOf(a0 *Candidate) *Survey { return x.surveyOf(a0) }

func (x Sign) Ask(a0 *corev1.Node) Testimony { return x.ask(a0) }

func (x *Word) AboutNode(a0 string, a1 *Config, a2 string) Verdict { return x.aboutNode(a0, a1, a2) }

func (x *Word) HeardAt() time.Time { return x.heardAt() }

func (x *Fleet) Occupied() map[string]place { return x.occupied }

func (x *Fleet) Leading() map[string]leading { return x.leading }

func (x *Fleet) Unhealthy() int { return x.total.unhealthy }

func (x *Fleet) WithoutRoster() { x.roster = nil }
