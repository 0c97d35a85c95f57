package text

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"":                            "",
		"as it is":                    "as it is",
		" two  spaces ":               "two spaces",
		"a\x1b[31mb\nc":               "a [31mb c",
		"a\u009b31mb":                 "a 31mb",
		"safe\u202etxt.exe\u2066":     "safe txt.exe",
		"soft\u00adhyphen \u200bzero": "soft hyphen zero",
		"line\u2028sep\u2029":         "line sep",
		"broken\xff\xc3":              "broken",
		"Größe 日本 e\u0301":            "Größe 日本 e\u0301",
		strings.Repeat("x", 41):       strings.Repeat("x", 40) + "…",
		strings.Repeat("ä", 21):       strings.Repeat("ä", 20) + "…",
	} {
		require.Equal(t, want, Line(s, 40), "%q", s)
	}
}

func TestQuoted(t *testing.T) {
	names := []string{"b", "a\nb", "b"}
	require.Equal(t, `"a\nb", "b"`, Quoted(names, 40))
	require.Equal(t, []string{"b", "a\nb", "b"}, names, "the caller's own")
	require.Equal(t, `"a\…`, Quoted(names, 3))
	require.Empty(t, Quoted(nil, 40))
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"as it is", "a\x1b[31mb\nc", "\u202e", "\u009b", "\xff", "😀\U000e0001", `"\`} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(0, min(n, 1<<16))
		line := Line(s, n)
		require.LessOrEqual(t, len(line), n+len("…"))
		require.True(t, utf8.ValidString(line))
		require.False(t, strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' }), "%q", line)
		require.NotContains(t, line, "  ")
		require.Equal(t, line, Line(line, n+len("…")), "a line stays as it is")
		require.False(t, strings.ContainsFunc(Visible(s), func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' && r != utf8.RuneError }))

		data, err := json.Marshal(s)
		require.NoError(t, err)
		var out strings.Builder
		_, err = JSONWriter{Out: &out}.Write(data)
		require.NoError(t, err)
		require.False(t, strings.ContainsFunc(out.String(), func(r rune) bool { return !unicode.IsGraphic(r) && r != utf8.RuneError }))
		var before, after string
		require.NoError(t, json.Unmarshal(data, &before))
		require.NoError(t, json.Unmarshal([]byte(out.String()), &after))
		require.Equal(t, before, after)
	})
}

// TestNothingThatSteersATerminalIsPassedOn, however the text is cut into writes.
func TestNothingThatSteersATerminalIsPassedOn(t *testing.T) {
	t.Parallel()
	steering := "a\x1b[2J\x1b]52;c;eA==\x07\u009b31m\u202egpj\u2066\u200b\ufeff\r\x00z\n\tü€😀"
	const shown = "a\ufffd[2J\ufffd]52;c;eA==\ufffd\ufffd31m\ufffdgpj\ufffd\ufffd\ufffd\ufffd\ufffdz\n\tü€😀"
	for size := 1; size <= len(steering); size++ {
		var out strings.Builder
		w := &Writer{Out: &out}
		for from := 0; from < len(steering); from += size {
			piece := steering[from:min(from+size, len(steering))]
			n, err := w.Write([]byte(piece))
			require.NoError(t, err)
			require.Equal(t, len(piece), n)
		}
		require.Equal(t, shown, out.String(), size)
	}
}

func TestAge(t *testing.T) {
	for age, want := range map[time.Duration]string{
		time.Hour: "1h", 10 * time.Minute: "10m", 90 * time.Minute: "1h30m", 61*time.Minute + 7*time.Second: "1h1m", 40 * time.Second: "40s",
		17*24*time.Hour + time.Hour: "17 days", 47 * time.Hour: "47h", 0: "0s",
	} {
		require.Equal(t, want, Age(age))
	}
}

func TestOneIsSingular(t *testing.T) {
	require.Equal(t, "0 nodes", Count(0, "node"))
	require.Equal(t, "1 node", Count(1, "node"))
	require.Equal(t, "2 more nodes", Count(2, "more node"))
}
