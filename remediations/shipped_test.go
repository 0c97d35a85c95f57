package remediations_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
)

func TestShippedPoliciesAreInTheProgram(t *testing.T) {
	files, err := fs.Glob(ShippedPolicies(), "*.yaml")
	require.NoError(t, err)
	require.Contains(t, files, "node-not-ready.yaml")
}
