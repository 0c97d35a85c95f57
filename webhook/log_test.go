package webhook

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestTheRotatorLogsNoErrorOfANormalStart: the rotator's other errors stay errors, and so do
// conflicts of other parts.
func TestTheRotatorLogsNoErrorOfANormalStart(t *testing.T) {
	t.Parallel()
	var lines []string
	log := WithoutNormalErrors(funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1}))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "drydock-webhook", errors.New("modified"))
	rotator := log.WithName("cert-rotation").WithValues("name", "drydock")
	rotator.Error(conflict, "could not refresh CA and server certs")
	rotator.Error(errors.New("missing ca.crt"), incomplete)
	rotator.Error(errors.New("forbidden"), "could not refresh CA and server certs")
	log.WithName("engine").Error(conflict, "the ledger was not written")
	require.Len(t, lines, 4)
	for _, detail := range lines[:2] {
		require.Contains(t, detail, `"level":1`)
	}
	for _, failure := range lines[2:] {
		require.Contains(t, failure, `"error":`)
		require.NotContains(t, failure, `"level"`)
	}
}
