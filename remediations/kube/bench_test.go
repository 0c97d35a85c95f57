package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/routing"
)

// heavyNode returns a Node that is as large as a real one. Drydock needs almost nothing of it.
func heavyNode() *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid", Labels: map[string]string{}, Annotations: map[string]string{}}}
	for i := range 20 {
		n.Labels[fmt.Sprintf("feature.example.com/cpu-%d", i)] = "true"
	}
	for i := range 12 {
		n.Annotations[fmt.Sprintf("network.example.com/setting-%d", i)] = "10.0.0.0/24,mtu=1450,mode=native"
	}
	for i := range 50 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/service-%d@sha256:%064x", i, i)}})
	}
	for range 4 {
		n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(" ", 1024))})
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// BenchmarkTrim measures the cost of each status update of a kubelet, without its decoding.
func BenchmarkTrim(b *testing.B) {
	n := heavyNode()
	b.ReportAllocs()
	for b.Loop() {
		Trim(n)
	}
}

// BenchmarkUnchanged measures the cost of an alert that its Node already has. Alertmanager sends it
// again at repeat_interval.
func BenchmarkUnchanged(b *testing.B) {
	c := config.Shipped().Core
	n := heavyNode()
	labels := map[string]string{
		"alertname": "NodeNotReady", "node": "n1", "remediation": "node-not-ready", "severity": "critical", "cluster": "bench",
		"namespace": "monitoring", "job": "kube-state-metrics", "instance": "10.0.0.1:8080", "prometheus": "monitoring/k8s",
	}
	began := time.Unix(1, 0).UTC()
	lookup := func(string) *corev1.Node { return n }
	route, why := routing.Of(c, labels, lookup)
	require.Equal(b, remediations.MisrouteNone, why)
	a := c.NewAlert(route.Policy, labels, remediations.StatusFiring, began, began)
	n.Annotations[a.Key()] = a.Encode()
	in := intake.Intake{Config: c, Writer: intake.Direct(nil), Node: lookup, Now: time.Now}
	b.ReportAllocs()
	for b.Loop() {
		result, err := in.Record(context.Background(), labels, remediations.StatusFiring, began)
		require.NoError(b, err)
		require.Equal(b, intake.Unchanged, result)
	}
}
