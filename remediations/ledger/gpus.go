package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// GPUsMost bounds the machines with a number of GPUs in the ledger. At 17 bytes each, they take a
// sixth of the ledger.
const GPUsMost = 10_000

// GPUMachine returns the machine's key in Ledger.GPUs. The key is a hash, because a providerID may
// be long.
func GPUMachine(n *corev1.Node) string {
	sum := sha256.Sum256([]byte(remediations.MachineOf(n)))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// GPUsOf returns the largest number of GPUs that the Node's machine ever had. It returns zero if
// the number is unknown, or if the Node's present GPUs cannot be compared with it.
func (l *Ledger) GPUsOf(n *corev1.Node) int {
	if l == nil {
		return 0
	}
	if _, whole := signs.WholeGPUs(n); !whole {
		return 0
	}
	return l.GPUs[GPUMachine(n)]
}

// ForgetGPUs removes the number of GPUs of the Node's machine, after a person has accepted the
// present number.
func (l *Ledger) ForgetGPUs(n *corev1.Node) {
	if machine := GPUMachine(n); l.GPUs[machine] > 0 {
		l.GPUs = maps.Clone(l.GPUs)
		delete(l.GPUs, machine)
	}
}
