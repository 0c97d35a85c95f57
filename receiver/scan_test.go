package receiver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// agrees checks that encoding/json reads the same as scan, whenever scan reads the payload.
func agrees(t require.TestingT, body []byte) (plain bool) {
	e, alerts, ok := scan(body)
	if !ok {
		return false
	}
	slow, slowAlerts, err := readSlowly(body)
	require.NoError(t, err, "%q", body)
	slow.Alerts = nil
	require.Equal(t, slow, e, "%q", body)
	require.Equal(t, slowAlerts, alerts, "%q", body)
	return true
}

// TestScanReadsAsTheLibraryDoes: for any payload, scan reads the same as encoding/json, or returns
// false. The test inserts odd parts at any place: other names, values of other kinds, bytes that
// are not JSON.
func TestScanReadsAsTheLibraryDoes(t *testing.T) {
	plain, odd := 0, 0
	text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,12}`), rapid.String())
	names := rapid.OneOf(rapid.SampledFrom([]string{
		"version", "groupKey", "receiver", "truncatedAlerts", "alerts", "status", "labels", "startsAt", "Status", "ALERTS", "\u017ftatus", "fingerprint", "annotations",
	}), text)
	values := rapid.Custom(func(t *rapid.T) any {
		return rapid.OneOf(
			rapid.Just[any](nil), rapid.Just[any]("4"), rapid.Just[any]("2026-11-20T20:55:00Z"), rapid.Just[any](map[string]any{}), rapid.Just[any]([]any{}),
			rapid.Map(rapid.Float64Range(-1e30, 1e30), func(f float64) any { return f }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.MapOfN(text, text, 0, 3), func(m map[string]string) any { return m }),
		).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		alerts := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "alerts") {
			a := map[string]any{
				"status": "firing", "labels": rapid.MapOfN(text, text, 0, 5).Draw(t, "labels"), "startsAt": "2026-11-20T20:55:00.1+01:00",
				"annotations": rapid.MapOfN(text, text, 0, 3).Draw(t, "annotations"), "endsAt": "0001-01-01T00:00:00Z",
			}
			if rapid.IntRange(0, 3).Draw(t, "odd alert") == 0 {
				a[names.Draw(t, "name")] = values.Draw(t, "value")
			}
			alerts = append(alerts, a)
		}
		payload := map[string]any{"version": "4", "groupKey": text.Draw(t, "groupKey"), "truncatedAlerts": 0, "receiver": "drydock", "alerts": alerts, "externalURL": "http://a?b&c"}
		if rapid.IntRange(0, 3).Draw(t, "odd payload") == 0 {
			payload[names.Draw(t, "name")] = values.Draw(t, "value")
		}
		body, err := json.Marshal(payload)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "spread out") {
			var spread bytes.Buffer
			require.NoError(t, json.Indent(&spread, body, " ", "\t"))
			body = spread.Bytes()
		}
		for range max(0, rapid.IntRange(-6, 3).Draw(t, "spoilt")) {
			i := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", " ", `"`, `\`, ",", ":", "{", "}", "[", "]", "0", "-", "e", "\x00", "\x80", `\u00e9`, `"x":1,`}).Draw(t, "with")
			body = append(append(bytes.Clone(body[:i]), with...), body[i+rapid.IntRange(0, 1).Draw(t, "without"):]...)
		}
		if agrees(t, body) {
			plain++
		} else {
			odd++
		}
	})
	if plain+odd >= 100 { // a short run draws too few to have both for sure
		require.NotZero(t, plain)
		require.NotZero(t, odd)
	}
}

// TestWhatIsOddIsLeftToTheLibrary has one payload for each rule of the scanner about odd parts.
// Without its rule, scan would read the payload in another way than encoding/json, or would read it
// at all.
func TestWhatIsOddIsLeftToTheLibrary(t *testing.T) {
	alert := func(members string) string { return postOf("{" + members + "}") }
	for what, body := range map[string]string{
		"a name in other letters":          alert(`"Status":"firing"`),
		"a name in letters akin":           alert(`"ſtatus":"firing"`),
		"a name with an escape":            alert(`"st\u0061tus":"firing"`),
		"a name twice":                     alert(`"labels":{"a":"b"},"labels":{"c":"d"}`),
		"a status that is a number":        alert(`"status":1`),
		"labels that are null":             alert(`"labels":null`),
		"labels that are a list":           alert(`"labels":[]`),
		"a label that is a number":         alert(`"labels":{"a":1}`),
		"a time that is none":              alert(`"startsAt":"yesterday"`),
		"an alert that is null":            postOf("null"),
		"a comma too many":                 postOf(fire("n1") + ","),
		"a comma too few":                  postOf(fire("n1") + " " + fire("n2")),
		"something behind it":              postOf() + "{}",
		"nothing behind it":                postOf()[:len(postOf())-1],
		"no alerts":                        `{"version":"4"}`,
		"another version":                  `{"version":"5","alerts":[]}`,
		"a number with a zero before":      `{"version":"4","alerts":[],"x":01}`,
		"a word that is none":              `{"version":"4","alerts":[],"x":nul}`,
		"a byte below the space in a text": "{\"version\":\"4\",\"alerts\":[],\"x\":\"\n\"}",
		"an escape that is none":           `{"version":"4","alerts":[],"x":"\x"}`,
		"lists within lists":               `{"version":"4","alerts":[],"x":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`,
		"more alerts than are allowed":     postOf(strings.Repeat("{},", maxAlerts) + "{}"),
		"an empty body":                    "",
	} {
		require.False(t, agrees(t, []byte(body)), what)
	}
	for what, body := range map[string]string{
		"nothing in it":                     postOf(),
		"all that is in a payload":          postOf(fire("n1"), alertJSON("resolved", "n1"), labelled(`"a":"\u0026é"`)),
		"as many alerts as are allowed":     postOf(strings.Repeat("{},", maxAlerts-1) + "{}"),
		"labels beyond all measure":         postOf(labelled(many(maxMapBytes / 8))),
		"others' values, whatever they are": `{"version":"4","alerts":[],"x":[1.5e-3,true,null,{"a":{},"b":[]},"\"\\\u00e9"]} ` + "\n",
	} {
		require.True(t, agrees(t, []byte(body)), what)
	}
}

func FuzzWalk(f *testing.F) {
	body, err := os.ReadFile("testdata/post.json")
	require.NoError(f, err)
	f.Add(body)
	for _, seed := range []string{postOf(), postOf(fire("n1"), alertJSON("resolved", "n1")), postOf(labelled(`"node":"\ud800","":"x"`)), fmt.Sprintf(`{"version":"4","alerts":[],"x":%q}`, "é")} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { agrees(t, body) })
}

// BenchmarkRead compares the scanner with encoding/json, over what Alertmanager posts.
func BenchmarkRead(b *testing.B) {
	whole, err := os.ReadFile("testdata/post.json")
	require.NoError(b, err)
	for what, body := range map[string][]byte{"recorded": whole, "1 alert": []byte(group(1)), "64 alerts": []byte(group(64))} {
		b.Run("scanner/"+what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, ok := scan(body)
				require.True(b, ok)
			}
		})
		b.Run("library/"+what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, err := readSlowly(body)
				require.NoError(b, err)
			}
		})
	}
}
