package kube_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
)

// TestAWriteToANodeThatIsGoneReturnsGone: the queue then drops what waits for that Node. It repeats
// a write after any other error.
func TestAWriteToANodeThatIsGoneReturnsGone(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	otherUID := apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "n1", nil)
	otherUID.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.uid"}}
	for name, c := range map[string]struct {
		answer *apierrors.StatusError
		gone   bool
	}{
		"it is gone":               {apierrors.NewNotFound(nodes, "n1"), true},
		"another has its name":     {otherUID, true},
		"the API server is slow":   {apierrors.NewTooManyRequests("slow down", 0), false},
		"the annotations are full": {apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "n1", nil), false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c.answer.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(int(c.answer.ErrStatus.Code))
			_ = json.NewEncoder(w).Encode(c.answer.ErrStatus)
		}))
		t.Cleanup(server.Close)
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
		require.NoError(t, err)
		value := "{}"
		err = kube.WriteAnnotations(client)(t.Context(), "n1", "uid", map[string]*string{"a": &value})
		require.Error(t, err, name)
		require.Equal(t, c.gone, errors.Is(err, intake.ErrGone), "%s: %v", name, err)
		if !c.gone {
			require.Equal(t, c.answer.ErrStatus.Reason, apierrors.ReasonForError(err), name)
		}
	}
}
