package receiver

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPlainTextsReadAsTheLibraryDoes: for any valid JSON, plainTexts reads the same as
// encoding/json, or returns false.
func TestPlainTextsReadAsTheLibraryDoes(t *testing.T) {
	plain := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,12}`), rapid.String())
		values := rapid.MapOf(text, text).Draw(rt, "texts")
		data, err := json.Marshal(values)
		require.NoError(rt, err)
		if rapid.Bool().Draw(rt, "spread out") {
			var spread bytes.Buffer
			require.NoError(rt, json.Indent(&spread, data, " ", "\t"))
			data = bytes.TrimSpace(spread.Bytes())
		}
		if got, ok := plainTexts(data); ok {
			plain++
			require.Equal(rt, values, got)
		}
	})
	require.NotZero(t, plain)
	for _, data := range []string{`{"a":1}`, `{"a":null}`, `{"a":{"b":"c"}}`, `[]`, `null`, `""`, `{"a":"\u0062"}`, `{"a\"":"b"}`, `{"a":"b"}x`, `{`, `{"a"`, `{"a":`, `{"a":"b"`, `{"a":"b",`, `{"a":"b",}`, ``} {
		_, ok := plainTexts([]byte(data))
		require.False(t, ok, data)
	}
	got, ok := plainTexts([]byte(`{"a":"b","a":"c"}`))
	require.True(t, ok)
	require.Equal(t, map[string]string{"a": "c"}, got, "the last one stands, as with the library")
	got, ok = plainTexts([]byte(" {}"[1:]))
	require.True(t, ok)
	require.Empty(t, got)
}
