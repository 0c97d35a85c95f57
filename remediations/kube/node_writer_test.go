package kube_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// TestAWriteOnANodeThatIsRefusedForSure is distinguished from a write that may have been done, and
// from a conflict with another client's change.
func TestAWriteOnANodeThatIsRefusedForSure(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for name, c := range map[string]struct {
		answer error
		is     error // if nil, the write may have been done
	}{
		"a policy denies it":        {apierrors.NewForbidden(nodes, "n0", errors.New("ValidatingAdmissionPolicy denied request")), engine.ErrUnwritten},
		"the annotations are full":  {apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "n0", nil), engine.ErrUnwritten},
		"it has no time":            {apierrors.NewTooManyRequests("slow down", 1), engine.ErrUnwritten},
		"somebody else wrote":       {apierrors.NewConflict(nodes, "n0", errors.New("it was changed")), engine.ErrConflict},
		"it is gone":                {apierrors.NewNotFound(nodes, "n0"), engine.ErrNotFound},
		"a webhook does not answer": {apierrors.NewInternalError(errors.New("failed calling webhook")), nil},
		"its store was slow":        {apierrors.NewTimeoutError("etcd", 1), nil},
		"the connection was cut":    {errors.New("connection reset by peer"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
			_, err := kube.NodeWriter{Client: client}.Write(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}, engine.NodeChange{})
			if !errors.Is(c.is, engine.ErrConflict) && !errors.Is(c.is, engine.ErrNotFound) {
				require.ErrorContains(t, err, c.answer.Error())
			}
			for _, known := range []error{engine.ErrUnwritten, engine.ErrConflict, engine.ErrNotFound} {
				require.Equal(t, errors.Is(c.is, known), errors.Is(err, known), "%v", known)
			}
		})
	}
}
