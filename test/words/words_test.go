package words

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDrydockSpeaksPlainly counts, by folder and kind of text, the patterns of the closed list that
// are still there, and comments that are too wide. left.txt has the allowed numbers, which may only
// become smaller. The test fails if there are more than allowed, and also if there are fewer.
// UPDATE=1 lowers the numbers in left.txt, and never raises one.
func TestDrydockSpeaksPlainly(t *testing.T) {
	found, used := map[string][]string{}, map[exception]bool{}
	excepted := exceptions(t)
	for _, said := range all(t) {
		if said.kind == "wide comment" {
			found[said.room()] = append(found[said.room()], said.odd("a wide comment", fmt.Sprintf("at most %d columns", mostColumns)))
			continue
		}
		plain := said.says
		for _, e := range excepted {
			if strings.Contains(plain, e.fragment) {
				plain, used[e] = strings.ReplaceAll(plain, e.fragment, "..."), true
			}
		}
		plain = strings.ToLower(strings.Join(strings.Fields(plain), " "))
		for _, p := range patterns {
			for range p.count(plain) {
				found[said.room()] = append(found[said.room()], said.odd(p.name, p.write))
			}
		}
		for range longSentences(said) {
			found[said.room()] = append(found[said.room()], said.odd("a long sentence", "several"))
		}
	}
	allowed, lowered := left(t), map[string]int{}
	for _, room := range slices.Sorted(maps.Keys(union(found, allowed))) {
		is, may := len(found[room]), allowed[room]
		switch update := os.Getenv("UPDATE") != ""; {
		case is > may:
			t.Errorf("%s: %d odd words, and left.txt allows %d. One of these is new:\n%s", room, is, may, strings.Join(found[room], "\n"))
		case is < may && !update:
			t.Errorf("%s: left.txt allows %d odd words, and %d are left. UPDATE=1 lowers the number", room, may, is)
		}
		if lowered[room] = min(is, may); lowered[room] == 0 {
			delete(lowered, room)
		}
	}
	for _, e := range excepted {
		if !used[e] {
			t.Errorf("exceptions.txt: nothing says %q any more: remove the line", e.fragment)
		}
	}
	if os.Getenv("UPDATE") != "" {
		writeLeft(t, lowered)
	}
	t.Logf("%d odd words are left in %d places; %d texts are excepted with a reason", sum(lowered), len(lowered), len(excepted))
}

// room is the place where the text is counted: its folder, and its kind. Subfolders of a provider
// or a target do not count separately.
func (t text) room() string {
	return path.Dir(t.file) + " " + strings.ReplaceAll(t.kind, " ", "-")
}

func (t text) odd(name, write string) string {
	return fmt.Sprintf("\t%s:%d: %q, write %s: %s", t.file, t.line, name, write, strings.Join(strings.Fields(t.says), " "))
}

type exception struct{ fragment, reason string }

// exceptions reads the file of exceptions. A line has a fragment that is right as it is, two
// spaces, # and the reason.
func exceptions(t *testing.T) (out []exception) {
	t.Helper()
	for line := range fileLines(t, "exceptions.txt") {
		if line == "" {
			continue
		}
		fragment, reason, ok := strings.Cut(line, "  # ")
		require.True(t, ok && reason != "", "exceptions.txt: a line has a fragment, two spaces, # and the reason: %q", line)
		out = append(out, exception{fragment, reason})
	}
	return out
}

func left(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for line := range fileLines(t, "left.txt") {
		if line == "" {
			continue
		}
		number, room, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		require.NoError(t, err, line)
		out[room] = n
	}
	return out
}

func writeLeft(t *testing.T, numbers map[string]int) {
	t.Helper()
	var b strings.Builder
	for _, room := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintf(&b, "%5d %s\n", numbers[room], room)
	}
	require.NoError(t, os.WriteFile("left.txt", []byte(b.String()), 0o600))
}

func fileLines(t *testing.T, name string) func(func(string) bool) {
	t.Helper()
	body, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.SplitSeq(strings.TrimSpace(string(body)), "\n")
}

func union(found map[string][]string, allowed map[string]int) map[string]bool {
	out := map[string]bool{}
	for room := range found {
		out[room] = true
	}
	for room := range allowed {
		out[room] = true
	}
	return out
}

func sum(numbers map[string]int) (n int) {
	for _, each := range numbers {
		n += each
	}
	return n
}
