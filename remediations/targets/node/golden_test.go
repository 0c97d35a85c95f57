package node_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestDecideGoldens compares every kind of decision about a node with its golden file. node.Decide
// is pure, so the webhook and a replay may call it freely.
func TestDecideGoldens(t *testing.T) {
	scene.Pin(t, "decide", scene.Golden.State, node.Decide, scene.Render, nil)
}

// goldenFolders are the folders with golden files, one for each kind of target.
var goldenFolders = []string{"decide", "successor", "../../sidecar/testdata/decide", "../../location/testdata/decide"}

// TestEveryOutputHasAnInput: an output whose input was renamed tests nothing.
func TestEveryOutputHasAnInput(t *testing.T) {
	for _, folder := range goldenFolders {
		outputs, err := filepath.Glob("testdata/" + folder + "/*.output.yaml")
		require.NoError(t, err)
		require.Len(t, outputs, len(scene.GoldensIn(t, folder)), folder)
	}
}

// TestEveryReasonAndVerbHasAGolden keeps the closed lists complete.
func TestEveryReasonAndVerbHasAGolden(t *testing.T) {
	reasons, verbs, outcomes := map[Reason]bool{}, map[lifecycle.Verb]bool{}, map[Outcome]bool{}
	for _, g := range slices.Concat(scene.Goldens(t), scene.GoldensIn(t, "../../sidecar/testdata/decide"), scene.GoldensIn(t, "../../location/testdata/decide")) {
		var v scene.VerdictFile
		require.NoError(t, yaml.UnmarshalStrict([]byte(g.Want(t)), &v))
		reasons[v.Reason], verbs[v.Verb] = true, true
		if v.Ended != nil {
			outcomes[v.Ended.Outcome] = true
		}
		if v.Relapsed != nil {
			outcomes[OutcomeRelapsed] = true
		}
	}
	for _, g := range scene.GoldensIn(t, "../../../rescue/apiserver/testdata/decide") {
		var v struct {
			Reason Reason `json:"reason"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(g.Want(t)), &v))
		reasons[v.Reason] = true
	}
	for _, r := range Reasons {
		require.True(t, reasons[r], "reason %s", r)
	}
	for _, v := range lifecycle.Verbs {
		require.True(t, verbs[v], "verb %s", v)
	}
	for _, o := range Outcomes {
		require.True(t, outcomes[o], "outcome %s", o)
	}
}
