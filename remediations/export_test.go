package remediations

import corev1 "k8s.io/api/core/v1"

// What the tests of the core ask that nobody else does. They stand outside of the package, as the scenes do that they share with the
// tests of the kinds of target.

const (
	GpuProduct         = gpuProduct
	GpuReplicas        = gpuReplicas
	GpuResource        = gpuResource
	GpuSharing         = gpuSharing
	LeaseAhead         = leaseAhead
	MaxAlertLabelBytes = maxAlertLabelBytes
	MaxBefore          = maxBefore
	MaxEvidence        = maxEvidence
	MaxHistory         = maxHistory
	MaxHistoryBytes    = maxHistoryBytes
	MaxObservedBytes   = maxObservedBytes
	MaxProviderName    = maxProviderName
	MigStrategy        = migStrategy
	RequestProofFor    = requestProofFor
	UnknownWait        = unknownWait
)

var (
	Clip          = clip
	GpusSay       = gpusSay
	NextOpening   = nextOpening
	PromoteLeader = promoteLeader
	Reboot        = reboot
	Replace       = replace
)

func (x *Config) Names(a0 map[string]string, a1 string) bool { return x.names(a0, a1) }

func (x Sign) Ask(a0 *corev1.Node) Testimony { return x.ask(a0) }
