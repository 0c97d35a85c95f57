package marks

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Shipped returns the marks of the default configuration. A test compares them with the table in
// docs/operate/other-systems.md.
func Shipped() List { return slices.Clone(shipped) }

const (
	removing    = "the node is being removed"
	handsOff    = "no other program may touch the node"
	autoscaler  = "kubernetes/autoscaler cluster-autoscaler/utils/taints/taints.go"
	karpenterV1 = "kubernetes-sigs/karpenter pkg/apis/v1/labels.go"
	nthNode     = "aws/aws-node-termination-handler pkg/node/node.go"
	lifecycle   = "kubernetes/enhancements keps/sig-node/5683-lifecycle-conditions/README.md"
	admins      = "a person or a maintenance controller"
	nvsentinel  = "NVIDIA/NVSentinel "
	cloudTaints = "kubernetes/cloud-provider api/well_known_taints.go"
	mcm         = "machine-controller-manager"
	mcmKeys     = "gardener/machine-controller-manager pkg/util/provider/machineutils/utils.go"
	harvester   = "harvester/harvester pkg/controller/master/node/maintain_controller.go"
	deckhouse   = "deckhouse/deckhouse modules/040-node-manager/images/node-controller/src/docs/controller-update-approval.md"
)

// NVIDIA's operator upgrades the driver in these states. In upgrade-required it only waits, and in
// upgrade-failed it has given up.
var gpuDriverUpgrades = []string{
	"cordon-required", "wait-for-jobs-required", "pod-deletion-required", "drain-required", "node-maintenance-required",
	"post-maintenance-required", "pod-restart-required", "validation-required", "uncordon-required",
}

// ShutdownTaint is the taint that a cloud's controller sets on the Node of a machine that is off.
// Drydock may be the cause: it switched the machine off, or its restart of the machine failed.
const ShutdownTaint = "node.cloudprovider.kubernetes.io/shutdown"

var shipped = List{
	{Kind: Taint, Key: "ToBeDeletedByClusterAutoscaler", By: "cluster-autoscaler", Means: removing, Source: autoscaler},
	{Kind: Taint, Key: "DeletionCandidateOfClusterAutoscaler", By: "cluster-autoscaler", Means: "the node is not needed and will be removed soon", Source: autoscaler,
		BelievedFor: time.Hour}, // by default the autoscaler removes such a node after 10 or 20 minutes; if it keeps the node, the taint may stay for days
	{Kind: Taint, Key: "karpenter.sh/disrupted", By: "Karpenter", Means: removing, Source: "kubernetes-sigs/karpenter pkg/apis/v1/taints.go"},
	{Kind: Taint, Key: "karpenter.sh/disruption", By: "Karpenter before 1.0", Means: removing, Source: "kubernetes-sigs/karpenter pkg/apis/v1beta1/taints.go"},
	{Kind: Taint, Key: "karpenter.sh/rebooting", By: "Karpenter", Means: "Karpenter reboots the node", Source: "kubernetes-sigs/karpenter pkg/apis/v1/taints.go"},
	{Kind: Taint, Key: ShutdownTaint, By: "the cloud controller manager", Means: "the machine is shut down", Source: cloudTaints},
	{Kind: Taint, Key: "node.cloudprovider.kubernetes.io/uninitialized", By: "the kubelet, for the cloud controller manager", Means: "the node is not set up yet", Source: cloudTaints},
	{Kind: Taint, Key: corev1.TaintNodeOutOfService, By: "a person, a cloud controller manager or another repair system", Means: "the machine is off, and its volumes are being released", Source: "kubernetes/kubernetes staging/src/k8s.io/api/core/v1/well_known_taints.go"},
	{Kind: Taint, Key: "aws-node-termination-handler/spot-itn", By: "the AWS node termination handler", Means: "AWS takes the spot instance away", Source: nthNode},
	{Kind: Taint, Key: "aws-node-termination-handler/scheduled-maintenance", By: "the AWS node termination handler", Means: "AWS has scheduled maintenance of the instance", Source: nthNode},
	{Kind: Taint, Key: "aws-node-termination-handler/asg-lifecycle-termination", By: "the AWS node termination handler", Means: "the Auto Scaling group terminates the instance", Source: nthNode},
	{Kind: Taint, Key: "aws-node-termination-handler/rebalance-recommendation", By: "the AWS node termination handler", Means: "AWS recommends to leave the spot instance", Source: nthNode},
	{Kind: Taint, Key: "remediator.kubernetes.azure.com/unschedulable", By: "AKS", Means: "AKS repairs or drains the node", Source: "Azure/AKS CHANGELOG.md"},
	{Kind: Taint, Key: "remediator.aks.microsoft.com/unschedulable", By: "AKS, in older releases", Means: "AKS repairs or drains the node", Source: "Azure/AKS CHANGELOG.md"},
	{Kind: Taint, Key: "cloud.google.com/impending-node-termination", By: "GKE", Means: "the machine is about to be stopped", Source: autoscaler},
	{Kind: Taint, Key: "medik8s.io/remediation", By: "Medik8s", Means: "Self Node Remediation or Fence Agents Remediation repairs the node", Source: "medik8s/fence-agents-remediation api/v1alpha1/fenceagentsremediation_types.go"},
	{Kind: Taint, Key: "medik8s.io/drain", By: "the Medik8s Node Maintenance Operator", Means: "the node is under maintenance", Source: "medik8s/node-maintenance-operator controllers/taint.go"},
	{Kind: Taint, Key: "node.cluster.x-k8s.io/uninitialized", By: "Cluster API", Means: "the node is not set up yet", Source: "kubernetes-sigs/cluster-api api/core/v1beta2/common_types.go"},
	{Kind: Taint, Key: "node.machine.sapcloud.io/preserved", By: mcm, Means: "the machine has failed, and is kept as it is", Source: mcmKeys},

	{Kind: Label, Key: "remediation.medik8s.io/exclude-from-remediation", Values: []string{"true"}, By: "a person or the Medik8s Node Maintenance Operator", Means: handsOff, Source: "medik8s/self-node-remediation controllers/selfnoderemediation_controller.go"},
	{Kind: Label, Key: "cloud.google.com/active-node-maintenance", Values: []string{"ONGOING"}, By: "GKE", Means: "maintenance of the host is under way", Source: "cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu"},
	{Kind: Label, Key: "dgxc.nvidia.com/nvsentinel-state", By: "NVSentinel", Means: "NVSentinel has quarantined the node", Source: nvsentinel + "commons/pkg/statemanager/statemanager.go"},
	{Kind: Label, Key: "nvidia.com/mig.config.state", Values: []string{"pending", "rebooting"}, By: "NVIDIA's MIG manager", Means: "MIG is being reconfigured", Source: "NVIDIA/mig-parted pkg/mig/reconfigure/reconfigure.go"},
	{Kind: Label, Key: "nvidia.com/gpu-driver-upgrade-state", Values: gpuDriverUpgrades, By: "NVIDIA's GPU Operator", Means: "the GPU driver is being upgraded", Source: "NVIDIA/k8s-operator-libs pkg/upgrade/consts.go"},
	{Kind: Label, Key: "node.machine.sapcloud.io/selected-for-update", By: mcm + " or a person", Means: "the node is updated in place", Source: "gardener/machine-controller-manager pkg/apis/machine/v1alpha1/constants.go"},

	{Kind: Annotation, Key: "karpenter.sh/do-not-disrupt", By: "a person", Means: handsOff, Source: karpenterV1},
	{Kind: Annotation, Key: "weave.works/kured-reboot-in-progress", By: "kured", Means: "kured reboots the node", Source: "kubereboot/kured cmd/kured/main.go",
		BelievedFor: time.Hour}, // a drain and a reboot take minutes, so a node that is not back after an hour needs a repair
	{Kind: Annotation, Key: "karpenter.sh/do-not-repair", Values: []string{"true"}, By: "a person or an update system", Means: "nothing is to repair the node", Source: karpenterV1},
	{Kind: Annotation, Key: "flatcar-linux-update.v1.flatcar-linux.net/reboot-in-progress", Values: []string{"true"}, By: "the Flatcar Linux update operator", Means: "the update agent drains and reboots the node", Source: "flatcar/flatcar-linux-update-operator pkg/constants/constants.go"},
	{Kind: Annotation, Key: "machineconfiguration.openshift.io/state", Values: []string{"Working", "Rebooting"}, By: "OpenShift's machine config daemon", Means: "the node is being updated", Source: "openshift/machine-config-operator pkg/daemon/constants/constants.go"},
	{Kind: Annotation, Key: "node.machine.sapcloud.io/preserve", Values: []string{"now"}, By: "a person", Means: "the machine is to be kept as it is", Source: mcmKeys},
	{Kind: Annotation, Key: "harvesterhci.io/maintain-status", By: "Harvester, in older releases", Means: "the node is under maintenance", Source: harvester},
	{Kind: Annotation, Key: "update.node.deckhouse.io/approved", By: "Deckhouse", Means: "the node is being updated", Source: deckhouse},
	{Kind: Annotation, Key: "update.node.deckhouse.io/disruption-approved", By: "Deckhouse or a person", Means: "an update may restart the node", Source: deckhouse},
	{Kind: Annotation, Key: "update.node.deckhouse.io/draining", By: "Deckhouse or a person", Means: "the node is being drained", Source: deckhouse},
	{Kind: Annotation, Key: "update.node.deckhouse.io/drained", By: "Deckhouse", Means: "the node was drained for other work", Source: deckhouse},
	{Kind: Annotation, Key: "quarantineHealthEvent", By: "NVSentinel", Means: "NVSentinel has quarantined the node", Source: nvsentinel + "fault-quarantine/pkg/common/common.go"},

	{Kind: Condition, Key: "GracefulNodeShutdownInProgress", By: "the kubelet", Means: "the machine is shutting down", Source: lifecycle, echo: true},
	{Kind: Condition, Key: "DrainInProgress", By: admins, Means: "the node is being drained", Source: lifecycle},
	{Kind: Condition, Key: "Drained", By: admins, Means: "the node was drained for other work", Source: lifecycle},
	{Kind: Condition, Key: "MaintenanceInProgress", By: admins, Means: "the node is under maintenance", Source: lifecycle},
	{Kind: Condition, Key: "VMEventScheduled", By: "the node problem detector of AKS", Means: "Azure has scheduled an event for the machine", Source: "learn.microsoft.com/azure/aks/node-problem-detector"},
	{Kind: Condition, Key: "Terminating", By: mcm, Means: removing, Source: mcmKeys},
	{Kind: Condition, Key: "MaintenanceMode", By: "Harvester", Means: "the node is under maintenance", Source: harvester},
}
