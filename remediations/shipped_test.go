package remediations

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShippedPoliciesAreInTheProgram(t *testing.T) {
	files, err := fs.Glob(ShippedPolicies(), "*.yaml")
	require.NoError(t, err)
	require.Contains(t, files, "node-not-ready.yaml")
}
