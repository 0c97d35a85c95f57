package admission

import (
	"maps"
	"slices"

	"drydock.dev/drydock/remediations"
)

// Drivers are the users that install drivers on Nodes, by the name of their system. Such a user
// cordons a node that has just booted, installs the driver, and uncordons the node. A repair that
// reboots the node waits for this driver, so Drivers may cordon and uncordon the node while its
// repair is Verifying.
type Drivers map[string][]string

// ShippedDrivers returns the users that Drydock knows. The chart has the same list (drydock.drivers
// in _helpers.tpl).
func ShippedDrivers() Drivers {
	return Drivers{
		// NVIDIA/gpu-operator assets/state-driver and assets/state-mig-manager. The second
		// namespace is OpenShift's.
		"nvidia-gpu-operator": {
			"system:serviceaccount:gpu-operator:nvidia-driver",
			"system:serviceaccount:gpu-operator:nvidia-mig-manager",
			"system:serviceaccount:nvidia-gpu-operator:nvidia-driver",
			"system:serviceaccount:nvidia-gpu-operator:nvidia-mig-manager",
		},
		// Mellanox/network-operator manifests/state-ofed-driver.
		"nvidia-network-operator": {"system:serviceaccount:nvidia-network-operator:ofed-driver"},
		// ROCm/gpu-operator helm-charts-k8s/templates/serviceaccount.yaml. The second user is
		// OpenShift's.
		"amd-gpu-operator": {
			"system:serviceaccount:kube-amd-gpu:amd-gpu-operator-gpu-operator-charts-controller-manager",
			"system:serviceaccount:openshift-amd-gpu:amd-gpu-operator-controller-manager",
		},
	}
}

// With returns d with the entries of own added. An entry of own replaces the entry of the same
// name. An empty entry allows no user.
func (d Drivers) With(own Drivers) Drivers {
	out := maps.Clone(d)
	maps.Copy(out, own)
	return out
}

// Covers reports whether the user installs drivers.
func (d Drivers) Covers(user string) bool {
	for _, users := range d {
		if slices.Contains(users, user) {
			return true
		}
	}
	return false
}

// installs reports whether a driver installer (a user of Drivers) makes the change while the node's
// repair waits for the proof of its step. The caller has checked that a repair is in flight. If the
// phase label shows such a repair, the label decides and not the record, because the
// ValidatingAdmissionPolicy reads only the label.
func (ch *Change) installs(busy *repair) bool {
	phase := busy.phase
	if !phase.InFlight() {
		phase = busy.record.Phase
	}
	return ch.Driver && phase == remediations.PhaseVerifying
}
