package words

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A text is one piece of text that people read, with its place.
type text struct {
	file string
	line int
	kind string // comment, wide comment, string, test name, page, rule, chart, schema, deploy, make, template
	says string
}

const root = "../.."

// generated are generated files. They are left out, because their sources are checked. The
// changelog and the license are left out, too.
var generated = regexp.MustCompile(
	`^(CHANGELOG\.md|docs/(configuration|metrics)\.md|docs/config\.schema\.json|charts/drydock/(README\.md|values\.schema\.json)|.*/testdata/.*)$`)

// all returns each text of the repository. These are comments and names of tests in all Go files,
// strings of the product, pages, rules, the chart, and descriptions in schemas.
func all(t *testing.T) (out []text) {
	t.Helper()
	list := exec.Command("git", "ls-files")
	list.Dir = root
	names, err := list.Output()
	require.NoError(t, err)
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSpace(name)
		if generated.MatchString(name) || strings.HasPrefix(name, "test/words/") {
			continue
		}
		read, ok := readers[kindOf(name)]
		if !ok {
			continue
		}
		body, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		out = append(out, read(t, name, body)...)
	}
	return out
}

var readers = map[string]func(t *testing.T, name string, body []byte) []text{
	"go": source, "page": page, "rule": lines("rule"), "chart": lines("chart"), "schema": lines("schema"), "deploy": lines("deploy"), "make": lines("make"), "template": lines("template"),
}

func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".go"):
		return "go"
	case strings.HasSuffix(name, ".md"):
		return "page"
	case strings.HasPrefix(name, "rules/") && strings.HasSuffix(name, ".yaml"):
		return "rule"
	case strings.HasPrefix(name, "charts/"):
		return "chart"
	case strings.HasPrefix(name, "deploy/") && !strings.HasSuffix(name, ".json"):
		return "deploy"
	case name == "Makefile":
		return "make"
	case strings.HasSuffix(name, ".html") && product(name):
		return "template"
	case strings.HasSuffix(name, ".json") && (strings.Contains(name, "/settings/") || strings.HasSuffix(name, "schema.json")):
		return "schema"
	}
	return ""
}

// product reports whether people who only use Drydock may read the strings of the file.
func product(name string) bool {
	return !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/") && !strings.HasPrefix(name, "tools/") &&
		!strings.HasPrefix(name, "internal/lab/") && !strings.HasPrefix(name, "remediations/testing/")
}

func source(t *testing.T, name string, body []byte) (out []text) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, body, parser.ParseComments)
	require.NoError(t, err)
	for _, group := range file.Comments {
		out = append(out, text{name, set.Position(group.Pos()).Line, "comment", sentences.Replace(group.Text())})
		out = append(out, wide(name, strings.Split(string(body), "\n"), set.Position(group.Pos()).Line, set.Position(group.End()).Line)...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil && product(name) {
				for _, reason := range reasons.FindAllStringSubmatch(n.Tag.Value, -1) {
					out = append(out, text{name, set.Position(n.Tag.Pos()).Line, "string", reason[1]})
				}
			}
			n.Tag = nil
		case *ast.BasicLit:
			if said, err := strconv.Unquote(n.Value); n.Kind == token.STRING && product(name) && err == nil && prose.MatchString(said) {
				out = append(out, text{name, set.Position(n.Pos()).Line, "string", said})
			}
		case *ast.FuncDecl:
			if strings.HasSuffix(name, "_test.go") && strings.HasPrefix(n.Name.Name, "Test") && n.Recv == nil {
				out = append(out, text{name, set.Position(n.Pos()).Line, "test name", spaced(n.Name.Name)})
			}
		}
		return true
	})
	return out
}

// reasons matches the reasons in struct tags of the configuration: they follow the bound of a key.
var reasons = regexp.MustCompile(`(?:least|most):"[^",]*, ([^"]+)"`)

// prose matches strings that people read: several words, or a single word that is a part of
// messages.
var prose = regexp.MustCompile(`\s|^[a-z]+$`)

// mostColumns is the largest width of a comment on a line of its own. A tab counts as one column.
// The linter checks the width of code.
const mostColumns = 100

// wide returns the lines from first to last that contain only a comment and are too wide.
func wide(name string, lines []string, first, last int) (out []text) {
	for n := first; n <= last; n++ {
		says := strings.TrimSpace(lines[n-1])
		if strings.HasPrefix(says, "//") && !directive.MatchString(says) && utf8.RuneCountInString(lines[n-1]) > mostColumns {
			out = append(out, text{name, n, "wide comment", says})
		}
	}
	return out
}

// A paragraph ends a sentence. So does each indented line.
var sentences = strings.NewReplacer("\n\n", ".\n", "\n\t", ".\n")

var directive = regexp.MustCompile(`^//(go:|nolint|lint:)`)

// spaced splits a name into words: TestANodeIsHeld becomes "test a node is held".
func spaced(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && (unicode.IsUpper(r) || r == '_') {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var code = regexp.MustCompile("`[^`]*`|<!--.*?-->|\\]\\([^)]*\\)")

// page returns a page's paragraphs, list items and table rows. It leaves out code, fenced or
// indented, and the addresses of links.
func page(_ *testing.T, name string, body []byte) (out []text) {
	fenced, begins, indented := false, true, false
	for i, l := range strings.Split(string(body), "\n") {
		trimmed := strings.TrimSpace(l)
		if strings.HasPrefix(trimmed, "```") {
			fenced, begins = !fenced, true
			continue
		}
		if fenced || trimmed == "" {
			begins = true
			continue
		}
		if indented = strings.HasPrefix(l, "    ") && (begins || indented); indented {
			continue
		}
		if begins || strings.ContainsAny(trimmed[:1], "#|-*>") || numbered.MatchString(trimmed) {
			out = append(out, text{name, i + 1, "page", ""})
		}
		begins = strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "|")
		out[len(out)-1].says += " " + trimmed
	}
	for i := range out {
		out[i].says = code.ReplaceAllString(out[i].says, " x ")
	}
	return out
}

var numbered = regexp.MustCompile(`^\d+\. `)

func lines(kind string) func(*testing.T, string, []byte) []text {
	return func(t *testing.T, name string, body []byte) (out []text) {
		t.Helper()
		in := bufio.NewScanner(bytes.NewReader(body))
		in.Buffer(nil, 1<<20)
		for n := 1; in.Scan(); n++ {
			out = append(out, text{name, n, kind, in.Text()})
		}
		require.NoError(t, in.Err())
		return out
	}
}
