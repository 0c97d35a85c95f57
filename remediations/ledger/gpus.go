package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// GPUsMost is the largest number of machines in Ledger.GPUs. With 17 bytes each, they take a sixth
// of the ledger.
const GPUsMost = 10_000

// GPUMachine returns the key of the Node's machine in Ledger.GPUs. The key is a hash, because a
// providerID may be long.
func GPUMachine(n *corev1.Node) string {
	sum := sha256.Sum256([]byte(remediations.MachineOf(n)))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// GPUsOf returns the largest number of GPUs that the Node's machine ever had. It returns zero if
// that number is unknown, or if it cannot be compared with the Node's present number. The GPUs are
// then partitioned, shared or offered under other names.
func (l *Ledger) GPUsOf(n *corev1.Node) int {
	if l == nil {
		return 0
	}
	if _, whole := signs.WholeGPUs(n); !whole {
		return 0
	}
	return l.GPUs[GPUMachine(n)]
}

// ForgetGPUs removes the number of GPUs of the Node's machine. The caller uses it after a person
// has accepted the present number.
func (l *Ledger) ForgetGPUs(n *corev1.Node) {
	if machine := GPUMachine(n); l.GPUs[machine] > 0 {
		l.GPUs = maps.Clone(l.GPUs)
		delete(l.GPUs, machine)
	}
}
