package clusterapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/remediations/owners"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// This file has the fields of Cluster API's objects (cluster.x-k8s.io/v1beta2) that Drydock reads.

const (
	group      = "cluster.x-k8s.io"
	apiVersion = group + "/v1beta2"

	remediateKey  = group + "/remediate-machine"
	skipKey       = group + "/skip-remediation"
	pausedKey     = group + "/paused"
	noDrainKey    = "machine." + group + "/exclude-node-draining"
	noMachineKey  = group + "/disable-machine-create"
	controlLabel  = group + "/control-plane"
	revisionKey   = "machinedeployment.clusters.x-k8s.io/revision"
	preDrainHook  = "pre-drain.delete.hook.machine." + group
	preTerminate  = "pre-terminate.delete.hook.machine." + group
	healthy       = "HealthCheckSucceeded"
	ownerRemedied = "OwnerRemediated"
	elseRemedied  = "ExternallyRemediated"
	nodeHealthy   = "NodeHealthy"
	deleting      = "Deleting"
	allowed       = "RemediationAllowed"

	// keptLabel is on each Machine with an annotation or a condition from Drydock, to find these
	// Machines again when the repair has ended.
	keptLabel = "drydock.dev/under-repair"
)

type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
}

func (o *object) has(annotation string) bool { _, there := o.Annotations[annotation]; return there }

type cluster struct {
	object
	Spec struct {
		Paused bool `json:"paused"`
	} `json:"spec"`
	Status kubeapi.StatusConditions `json:"status"`
}

type machine struct {
	object
	Spec struct {
		ClusterName string `json:"clusterName"`
		ProviderID  string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		kubeapi.StatusConditions
		Initialization struct {
			InfrastructureProvisioned bool `json:"infrastructureProvisioned"`
		} `json:"initialization"`
		NodeRef struct {
			Name string `json:"name"`
		} `json:"nodeRef"`
	} `json:"status"`
}

func (m *machine) ours(annotation string) bool {
	owns, err := owners.Annotation(&corev1.Node{ObjectMeta: m.ObjectMeta}, annotation)
	return err == nil && owns && m.Labels[keptLabel] == "true"
}

func (m *machine) kept() bool { return m.ours(skipKey) }

// marked reads only HealthCheckSucceeded, because the MachineSet may have changed OwnerRemediated.
func (m *machine) marked() bool {
	said := m.Status.Get(healthy)
	return said != nil && said.Status == metav1.ConditionFalse && strings.HasPrefix(said.Message, markedBy)
}

func (m *machine) asked() bool { return m.marked() || m.ours(remediateKey) }

func (m *machine) up() bool {
	return m.DeletionTimestamp == nil && m.Spec.ProviderID != "" && m.Status.Initialization.InfrastructureProvisioned && m.Status.NodeRef.Name != ""
}

type machineDeployment struct {
	object
	Spec struct {
		Paused      bool `json:"paused"`
		Replicas    *int `json:"replicas"`
		Remediation struct {
			MaxInFlight *intstr.IntOrString `json:"maxInFlight"`
		} `json:"remediation"`
	} `json:"spec"`
}

type healthCheck struct {
	object
	Spec struct {
		ClusterName string               `json:"clusterName"`
		Selector    metav1.LabelSelector `json:"selector"`
		Remediation struct {
			TemplateRef struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"templateRef"`
		} `json:"remediation"`
	} `json:"spec"`
	Status struct {
		kubeapi.StatusConditions
		RemediationsAllowed *int `json:"remediationsAllowed"`
	} `json:"status"`
}
