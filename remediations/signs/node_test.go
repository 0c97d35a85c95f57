package signs_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noon is the time of these tests. They do not use package scene, because it imports all packages
// that depend on signs, and go would compile these once more for the tests.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// bare returns a healthy node.
func bare(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       corev1.NodeSpec{ProviderID: "civo://" + name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{BootID: "boot1"},
		},
	}
}
