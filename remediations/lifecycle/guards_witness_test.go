package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestSignThatHoldsIsReadAgainInTime: a sign that holds a repair is due to be read again after half
// a minute, and not before.
func TestSignThatHoldsIsReadAgainInTime(t *testing.T) {
	for age, again := range map[time.Duration]bool{lifecycle.WitnessAgain - 1: false, lifecycle.WitnessAgain: true} {
		s := scene.Golden{Input: "../targets/node/testdata/decide/held-NotWitnessed-by-what-was-read.input.yaml"}.State(t)
		for sign, said := range s.Read {
			said.At = scene.Noon.Add(-age)
			s.Read[sign] = said
		}
		d := node.Decide(s, scene.Noon)
		require.Equal(t, ReasonNotWitnessed, d.Reason)
		require.Equal(t, again, d.Ask.Witness, age)
	}
}
