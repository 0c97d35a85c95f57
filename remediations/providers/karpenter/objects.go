package karpenter

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/providers/kubeapi"
)

// This file has the fields of Karpenter's objects (karpenter.sh/v1) that Drydock reads.

const (
	group        = "karpenter.sh"
	apiVersion   = group + "/v1"
	poolLabel    = group + "/nodepool"
	disruptedKey = group + "/disrupted"
	doNotDisrupt = group + "/do-not-disrupt"
	// doNotRepair and rebootingKey exist since Karpenter 1.15 (kubernetes-sigs/karpenter
	// pkg/apis/v1/labels.go, taints.go).
	doNotRepair  = group + "/do-not-repair"
	rebootingKey = group + "/rebooting"
	finalizer    = group + "/termination"
	terminateAt  = group + "/nodeclaim-termination-timestamp"
	registered   = "Registered"
	initialized  = "Initialized"
	readyPool    = "Ready"
	// The condition is True from Karpenter's decision to reboot until the Node is Ready again, or
	// has failed to become Ready in time.
	rebooting     = "Rebooting"
	nodeClaimKind = "NodeClaim"
)

type nodeClaim struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		TerminationGracePeriod string `json:"terminationGracePeriod"`
	} `json:"spec"`
	Status struct {
		kubeapi.StatusConditions
		NodeName   string `json:"nodeName"`
		ProviderID string `json:"providerID"`
	} `json:"status"`
}

func (n *nodeClaim) up() bool {
	return n.DeletionTimestamp == nil && n.Status.True(registered) && n.Status.True(initialized) && n.Status.NodeName != "" && n.Status.ProviderID != ""
}

type nodePool struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// Replicas is for a static NodePool. If it is nil, the NodePool has as many Nodes as its
		// pods need.
		Replicas   *int64 `json:"replicas"`
		Disruption struct {
			Budgets []budget `json:"budgets"`
		} `json:"disruption"`
	} `json:"spec"`
	Status kubeapi.StatusConditions `json:"status"`
}

func owners(of []metav1.OwnerReference, kind string) (out []metav1.OwnerReference) {
	for _, one := range of {
		if one.Kind == kind && strings.HasPrefix(one.APIVersion, group+"/") {
			out = append(out, one)
		}
	}
	return out
}
