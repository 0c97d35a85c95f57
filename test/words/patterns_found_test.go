package words

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each sentence matches exactly one pattern, which is named before it.
var odd = map[string]string{
	"of which":         "the node, two disks of which are full",
	"whom":             "a person whom the alert names",
	"such as":          "marks such as a taint",
	"shall":            "the repair shall wait",
	"anew":             "the count begins anew",
	"mend":             "the reboot mended the node",
	"bears":            "the Node bears a label",
	"hears":            "Drydock has heard of the alert",
	"tells":            "the kubelet tells why",
	"told":             "nothing is told twice",
	"says ill of":      "a condition says ill of the node",
	"none is":          "none is held",
	"nobody":           "somebody must look at the machine",
	"whoever":          "whoever may write it",
	"is no X":          "a silence is no fault",
	"is over":          "the alert is over",
	"glass":            "the glass is broken",
	"is asked for":     "a reboot is asked for",
	"is waited for":    "the proof is waited for",
	"is said":          "the reason is said at once",
	"says neither":     "it says neither that it runs nor that it waits",
	"by now":           "by now the node is another one",
	"goes on":          "the repair goes on",
	"lets go":          "the breaker lets go",
	"is taken off":     "the taint is taken off",
	"nobody knows":     "no one knows the outcome",
	"what was seen":    "what was seen counts for 10s",
	"the one there is": "the leader, the one there is",
	"as ... says":      "the node is away, as the lease says",
	"its word":         "an Alertmanager and its word",
	"10m0s":            "it waits for 10m0s",
	"fires since":      "the alert fires since noon",
	"for want of":      "the step is held for want of a provider",
}

func TestEachPatternIsFound(t *testing.T) {
	for _, p := range patterns {
		require.Contains(t, odd, p.name)
		require.Equal(t, 1, p.count(strings.ToLower(odd[p.name])), p.name)
	}
	require.Len(t, odd, len(patterns))
}

func TestPlainSentencesAreNotOdd(t *testing.T) {
	for _, plain := range []string{
		"There is no Node with this name.", "The alert is no longer active.", "break-glass has expired (set at 10:00, limit 1h).",
		"The alert has been firing since 10:00.", "It waits for 10m.", "The node overheats.", "Anybody knows: the shallow end.",
	} {
		for _, p := range patterns {
			require.Zero(t, p.count(strings.ToLower(plain)), "%s: %s", p.name, plain)
		}
	}
}

func TestAStringOfOneWordIsRead(t *testing.T) {
	read := source(t, "a.go", []byte("package a\n\nvar a, key, address = `nobody`, `drydock.dev/told`, `Told`\n"))
	require.Equal(t, []text{{"a.go", 3, "string", "nobody"}}, read)
}

func TestTheReasonOfABoundIsRead(t *testing.T) {
	read := source(t, "a.go", []byte("package a\n\nvar a struct {\n\tb int `json:\"told\" most:\"5m, nobody waits\"`\n}\n"))
	require.Equal(t, []text{{"a.go", 4, "string", "nobody waits"}}, read)
}

func TestLongSentencesAreFound(t *testing.T) {
	long := strings.Repeat("word ", mostWords+1)
	require.Equal(t, 1, longSentences(text{kind: "page", says: long + ". A short one."}))
	require.Equal(t, 2, longSentences(text{kind: "comment", says: long + ". " + long}))
	require.Zero(t, longSentences(text{kind: "page", says: strings.Repeat("word ", mostWords) + ". " + "Another one."}))
	require.Zero(t, longSentences(text{kind: "string", says: long}), "a string may hold a whole page")
}

func TestTextsAreReadOfEachKind(t *testing.T) {
	kinds := map[string]int{}
	for _, each := range all(t) {
		kinds[each.kind]++
	}
	for _, kind := range []string{"comment", "string", "test name", "page", "rule", "chart", "schema"} {
		require.Greater(t, kinds[kind], 50, "%s: so few texts are read that the check says nothing", kind)
	}
	require.Equal(t, "test a node is held", spaced("TestANodeIsHeld"))
}

func TestWideCommentsAreFound(t *testing.T) {
	line := func(columns int) string { return "//" + strings.Repeat("a", columns-len("//")) }
	for body, found := range map[string]int{
		line(mostColumns):                                     0,
		line(mostColumns + 1):                                 1,
		"\t" + line(mostColumns):                              1,
		"var a = 1 " + line(mostColumns):                      0,
		"//go:generate " + strings.Repeat("a", 2*mostColumns): 0,
	} {
		lines := []string{body}
		require.Len(t, wide("a.go", lines, 1, 1), found, body)
	}
}

// TestNamesAndCodeDoNotMakeALongSentence: a list of tests or links, the lines of a drawing, and
// indented code are not prose. The same number of words of prose is too long, also within one link.
func TestNamesAndCodeDoNotMakeALongSentence(t *testing.T) {
	count := func(body string) (n int) {
		for _, each := range page(t, "a.md", []byte(body)) {
			n += longSentences(each)
		}
		return n
	}
	prose := strings.Repeat("word ", mostWords+1)
	require.Equal(t, 1, count(prose))
	require.Equal(t, 1, count("- an item\n  "+prose))
	require.Zero(t, count(strings.Repeat("`TestA`, ", mostWords+1)))
	require.Zero(t, count(strings.Repeat("[two words](a.md), ", mostWords)))
	require.Equal(t, 1, count("["+prose+"](a.md)"))
	require.Zero(t, count("Text:\n\n    "+prose+"\n    "+prose))

	drawn := func(line string) int {
		read := source(t, "a.go", []byte("// Package a says:\n//\n//"+line+"\npackage a\n"))
		return longSentences(read[0])
	}
	half := strings.Repeat("word ", mostWords/2+1)
	require.Equal(t, 1, drawn(" "+half+"\n// "+half))
	require.Zero(t, drawn("\t"+half+"\n//\t"+half))
}
