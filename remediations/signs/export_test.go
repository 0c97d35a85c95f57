package signs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Exports that only the tests need.

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
