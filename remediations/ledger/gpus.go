package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// GPUsMost bounds Ledger.GPUs. With 17 bytes each, they take a sixth of the ledger.
const GPUsMost = 10_000

// GPUMachine returns the key in Ledger.GPUs. It is a hash, because a providerID may be long.
func GPUMachine(n *corev1.Node) string {
	sum := sha256.Sum256([]byte(remediations.MachineOf(n)))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// GPUsOf returns the largest number of GPUs that the machine ever had. It is zero if that is
// unknown, or if the GPUs are now partitioned, shared or offered under other names.
func (l *Ledger) GPUsOf(n *corev1.Node) int {
	if l == nil {
		return 0
	}
	if _, whole := signs.WholeGPUs(n); !whole {
		return 0
	}
	return l.GPUs[GPUMachine(n)]
}

// ForgetGPUs removes the number after a person has accepted the present one.
func (l *Ledger) ForgetGPUs(n *corev1.Node) {
	if machine := GPUMachine(n); l.GPUs[machine] > 0 {
		l.GPUs = maps.Clone(l.GPUs)
		delete(l.GPUs, machine)
	}
}
