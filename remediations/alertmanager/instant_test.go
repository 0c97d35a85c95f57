package alertmanager

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestInstantsAreReadAsTheLibraryDoes: instant and strfmt.DateTime read the same time, or both
// fail.
func TestInstantsAreReadAsTheLibraryDoes(t *testing.T) {
	same := func(t require.TestingT, text string) (read bool) {
		var ours *instant
		var theirs *strfmt.DateTime
		err, theirErr := json.Unmarshal([]byte(text), &ours), json.Unmarshal([]byte(text), &theirs)
		require.Equal(t, theirErr == nil, err == nil, text)
		if err == nil {
			require.True(t, timeOf(ours).Equal(timeOf(theirs)), text)
		}
		return err == nil
	}
	for _, text := range []string{`null`, `""`, `"2026-11-20T21:00:00.123Z"`, `"2026-11-20"`, `"2026-11-20T21:00:00"`, `"2026-11-20T21:00:00\u005a"`} {
		require.True(t, same(t, text), text)
	}
	for _, text := range []string{`1`, `{}`, `"yesterday"`, `"2026-13-20T21:00:00Z"`} {
		require.False(t, same(t, text), text)
	}
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SampledFrom(append([]string{time.RFC3339Nano, time.DateTime}, strfmt.DateTimeFormats...)).Draw(t, "layout")
		at := time.Unix(rapid.Int64Range(-1e11, 2.5e11).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		text, err := json.Marshal(at.In(time.FixedZone("", 900*rapid.IntRange(-48, 56).Draw(t, "zone"))).Format(layout))
		require.NoError(t, err)
		same(t, string(text))
		i := rapid.IntRange(1, len(text)-2).Draw(t, "spoilt at")
		text[i] = rapid.SampledFrom([]byte("09 TZ:-+.,")).Draw(t, "with")
		same(t, string(text))
	})
}
