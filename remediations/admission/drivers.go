package admission

import (
	"maps"
	"slices"

	"drydock.dev/drydock/remediations"
)

// Drivers are the users that install drivers on Nodes, by the name of their system. Such a user
// cordons a node that has just booted, installs the driver, and uncordons the node. The proof of a
// reboot waits for this driver, so Drivers may cordon and uncordon the node while its repair is
// Verifying.
type Drivers map[string][]string

// ShippedDrivers returns the users that are known by default. The chart has the same list
// (drydock.drivers in _helpers.tpl).
func ShippedDrivers() Drivers {
	return Drivers{
		// The source is NVIDIA/gpu-operator assets/state-driver and assets/state-mig-manager. On
		// OpenShift the namespace is nvidia-gpu-operator.
		"nvidia-gpu-operator": {
			"system:serviceaccount:gpu-operator:nvidia-driver",
			"system:serviceaccount:gpu-operator:nvidia-mig-manager",
			"system:serviceaccount:nvidia-gpu-operator:nvidia-driver",
			"system:serviceaccount:nvidia-gpu-operator:nvidia-mig-manager",
		},
		// The source is Mellanox/network-operator manifests/state-ofed-driver.
		"nvidia-network-operator": {"system:serviceaccount:nvidia-network-operator:ofed-driver"},
		// The source is ROCm/gpu-operator helm-charts-k8s/templates/serviceaccount.yaml. On
		// OpenShift the namespace is openshift-amd-gpu.
		"amd-gpu-operator": {
			"system:serviceaccount:kube-amd-gpu:amd-gpu-operator-gpu-operator-charts-controller-manager",
			"system:serviceaccount:openshift-amd-gpu:amd-gpu-operator-controller-manager",
		},
	}
}

// With returns d with the entries of own added. An empty entry allows no user.
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

// installs reports whether a user of Drivers makes the change while the node's repair is Verifying.
// The phase comes from the Node's label, because the ValidatingAdmissionPolicy reads only the
// label. If the label shows no repair in flight, the phase comes from the record.
func (ch *Change) installs(busy *repair) bool {
	phase := busy.phase
	if !phase.InFlight() {
		phase = busy.record.Phase
	}
	return ch.Driver && phase == remediations.PhaseVerifying
}
