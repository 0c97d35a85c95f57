package remediations_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestWhateverIsWrittenCanBeRead: Drydock can read every record that it writes, however long the
// plan and the messages of providers and hosts are. Shortening never removes what decisions depend
// on.
func TestWhateverIsWrittenCanBeRead(t *testing.T) {
	names := []string{"reboot", "restart-containerd", "restart-kube-proxy", "drain", "replace"}
	said := rapid.SampledFrom([]string{"", "no quota", strings.Repeat("a long story ", 40), strings.Repeat("\x01\"\\", 500), strings.Repeat("ü€", 300)})
	longest := 0
	rapid.Check(t, func(t *rapid.T) {
		step := StepRef{Index: 31, Name: "replace", Attempt: 1}
		r := &Record{
			V: 1, ID: "abc234", Policy: strings.Repeat("p", rapid.SampledFrom([]int{4, 63}).Draw(t, "policy")), Cause: Cause{Alert: scene.FP}, Phase: PhaseVerifying, Step: step,
			Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon, Evidence: EvidenceOf(said.Draw(t, "evidence")), Note: Clip(said.Draw(t, "note"), 400),
			Intent: &Intent{ID: "abc234-31-1", At: scene.Noon, BootID: strings.Repeat("b", 36), UID: strings.Repeat("u", 36), ProviderID: "civo://" + strings.Repeat("i", 36), Before: rapid.SampledFrom([]Before{"", Before(`{"kept":"` + strings.Repeat("k", MaxBefore-11) + `"}`)}).Draw(t, "before"), Why: Clip(said.Draw(t, "why"), 300), Outcome: CallRefused},
			Hold:   &Hold{Reason: ReasonPaused, Message: Clip(said.Draw(t, "hold"), 400), Since: scene.Noon},
			Undo:   []Undo{{Kind: UndoCordon, At: scene.Noon}, {Kind: UndoTaint, Key: OutOfServiceTaint, At: scene.Noon, BootID: strings.Repeat("b", 36)}, {Kind: UndoAnnotation, Key: announce.Annotations["cluster-autoscaler"][0], At: scene.Noon}, {Kind: UndoAnnotation, Key: announce.Annotations["karpenter"][0], At: scene.Noon}, {Kind: UndoAnnotation, Key: announce.Annotations["karpenter"][1], At: scene.Noon}},
		}
		for i := range rapid.IntRange(0, 32).Draw(t, "passed") {
			r.Passed = append(r.Passed, Passed{Index: i, Name: names[i%len(names)], Why: Clip(said.Draw(t, "passed"), PassedWhy)})
		}
		for i := range rapid.IntRange(0, 640).Draw(t, "done") {
			r.Done = append(r.Done, StepRef{Name: names[i%len(names)], Attempt: 1 + i/32}.Issued())
		}
		for range rapid.IntRange(0, AlsoMost).Draw(t, "also") {
			r.Also = append(r.Also, scene.FP)
		}
		text := r.Encode()
		longest = max(longest, len(text))
		read, err := DecodeRecord(text)
		if err != nil {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
		require.Equal(t, r.Step, read.Step)
		require.Equal(t, r.Intent.ID, read.Intent.ID)
		require.Equal(t, r.Undo, read.Undo)
		require.Equal(t, r.Drained(), read.Drained())
		require.Equal(t, LastDone(r), LastDone(read))
		require.Len(t, read.Passed, len(r.Passed))
		require.Equal(t, read.Encode(), text)
	})
	require.LessOrEqual(t, longest, MaxRecordBytes)
	require.Greater(t, longest, MaxRecordBytes/2, "none of them was long")
}

// TestALongRecordLosesItsWordsFirst: Encode shortens the messages of a long record first, and
// nothing of a short record.
func TestALongRecordLosesItsWordsFirst(t *testing.T) {
	r := &Record{V: 1, ID: "abc234", Policy: "p", Cause: Cause{Alert: scene.FP}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1}, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Hour), Evidence: "the disk is full"}
	read, err := DecodeRecord(r.Encode())
	require.NoError(t, err)
	require.Equal(t, r, read)
	for i := range 40 {
		r.Passed = append(r.Passed, Passed{Index: i, Name: "restart-containerd", Why: strings.Repeat("x", PassedWhy)})
	}
	read, err = DecodeRecord(r.Encode())
	require.NoError(t, err)
	require.Len(t, read.Passed, 40)
	require.Equal(t, "the disk is full", read.Evidence, "the reasons of steps that were passed over go first")
}
