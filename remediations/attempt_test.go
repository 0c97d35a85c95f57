package remediations_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAnAttemptIsReadOnceAndWrittenAsItWas: Drydock parses its own form of an attempt. It writes
// any other text of a history back unchanged.
func TestAnAttemptIsReadOnceAndWrittenAsItWas(t *testing.T) {
	for text, want := range map[string]Attempt{
		"reboot:1": {Name: "reboot", Number: 1}, "restart-kubelet:12": StepRef{Name: "restart-kubelet", Attempt: 12}.Issued(), "": {}, "drain": {Name: "drain"},
	} {
		require.Equal(t, want, AttemptOf(text), text)
		require.Equal(t, text, want.String())
	}
	for text, name := range map[string]string{"drain:x": "drain", "drain:01": "drain", "drain:+1": "drain", "drain:1:2": "drain", ":1": "", "drain:0": "drain", "drain:-1": "drain"} {
		require.Equal(t, name, AttemptOf(text).Name, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.OneOf(scene.AnyText, rapid.StringMatching(`[a-z-]{0,8}:?[0-9+x-]{0,3}`))).Draw(t, "attempts")
		was, err := json.Marshal(texts)
		require.NoError(t, err)
		var read Attempts
		require.NoError(t, json.Unmarshal(was, &read))
		is, err := json.Marshal(read)
		require.NoError(t, err)
		require.Equal(t, string(was), string(is))
	})
}
