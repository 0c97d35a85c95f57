package webhook

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The parts of a Node that a decision may depend on. Images and managed fields are not read,
// because they would be most of a request's cost.
type nodeParts struct {
	Metadata struct {
		Name              string                  `json:"name"`
		UID               types.UID               `json:"uid"`
		ResourceVersion   string                  `json:"resourceVersion"`
		Labels            map[string]string       `json:"labels"`
		Annotations       map[string]string       `json:"annotations"`
		CreationTimestamp metav1.Time             `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		ProviderID    string         `json:"providerID"`
		Unschedulable bool           `json:"unschedulable"`
		Taints        []corev1.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []corev1.NodeCondition `json:"conditions"`
	} `json:"status"`
}

func readNode(data []byte) (*corev1.Node, error) {
	var p nodeParts
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	m := p.Metadata
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels, Annotations: m.Annotations,
			CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
		},
		Spec:   corev1.NodeSpec{ProviderID: p.Spec.ProviderID, Unschedulable: p.Spec.Unschedulable, Taints: p.Spec.Taints},
		Status: corev1.NodeStatus{Conditions: p.Status.Conditions},
	}, nil
}
