package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/remediations"
)

// heavyNode is as large as a real Node: images, managed fields, labels.
func heavyNode() *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid", Labels: map[string]string{}, Annotations: map[string]string{}}}
	for i := range 20 {
		n.Labels[fmt.Sprintf("feature.example.com/cpu-%d", i)] = "true"
	}
	for i := range 12 {
		n.Annotations[fmt.Sprintf("network.example.com/setting-%d", i)] = "10.0.0.0/24,mtu=1450,mode=native"
	}
	for i := range 50 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/service-%d@sha256:%064x", i, i), fmt.Sprintf("registry.example.com/service-%d:v1", i)}, SizeBytes: 1 << 26})
	}
	for _, manager := range []string{"kubelet", "kube-controller-manager", "cni"} {
		n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{` + strings.Repeat(`"f:a-label-of-some-length":{},`, 30) + `".":{}}}}`),
		})
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Unix(1, 0))}}
	return n
}

// BenchmarkCordon compares a request that Drydock judges with a webhook that allows everything.
func BenchmarkCordon(b *testing.B) {
	old := heavyNode()
	now := old.DeepCopy()
	now.Spec.Unschedulable = true
	raw := func(n *corev1.Node) runtime.RawExtension {
		text, err := json.Marshal(n)
		require.NoError(b, err)
		return runtime.RawExtension{Raw: text}
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Name: "n1", Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: "ada"},
			Object: raw(now), OldObject: raw(old),
		},
	})
	require.NoError(b, err)
	d := newDesk(b, remediations.ModeEnforce)
	trivial := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Response, review.Request = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}, nil
		_ = json.NewEncoder(w).Encode(review)
	})
	for name, h := range map[string]http.Handler{"drydock": reviews(d.handler), "trivial": trivial} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				require.Equal(b, http.StatusOK, w.Code)
			}
		})
	}
}
