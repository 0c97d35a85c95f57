package signs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What the tests of the signs ask that nobody else does.

const (
	GpuProduct  = gpuProduct
	GpuReplicas = gpuReplicas
	GpuResource = gpuResource
	GpuSharing  = gpuSharing
	LeaseAhead  = leaseAhead
	MigStrategy = migStrategy
)

var GpusSay = gpusSay

func (x Sign) Ask(a0 *corev1.Node) Testimony { return x.ask(a0, time.Time{}) }

func (x Sign) AskAt(a0 *corev1.Node, now time.Time) Testimony { return x.ask(a0, now) }
