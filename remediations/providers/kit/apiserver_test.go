package kit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/remediations/providers/kit"
)

func TestOnlyAnAnswerThatWouldComeAgainIsFinal(t *testing.T) {
	code := func(c int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: c}}
	}
	for _, c := range []int32{400, 403, 405, 413, 422} {
		require.True(t, kit.Final(code(c)), c)
	}
	for _, c := range []int32{401, 408, 429, 500, 502, 503, 504} {
		require.False(t, kit.Final(code(c)), c)
	}
	require.False(t, kit.Final(errors.New("connection refused")))
	leaving := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0", errors.New("the namespace is being deleted"))
	require.True(t, kit.Final(leaving))
	leaving.ErrStatus.Details.Causes = append(leaving.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	require.False(t, kit.Final(leaving), "its pods go in a moment")
}

func TestWhatOthersSaidIsNotTooLong(t *testing.T) {
	long := kit.Brief(fmt.Errorf("denied: %s", strings.Repeat("ä", 5000)))
	require.LessOrEqual(t, len(long), 200+len("…"))
	require.True(t, strings.HasSuffix(long, "ä…"), "cut between characters")
}
