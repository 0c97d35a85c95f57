package logs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs are the folders whose code writes into the log of drydock or drydock-agent. internal/lab
// is for tests alone.
var programs = []string{"cmd/drydock", "cmd/drydock-agent", "internal", "receiver", "remediations", "webhook"}

// written are the fields that slog and logr write by themselves.
var written = []string{"time", "level", "msg", "logger", "err"}

// TestEveryFieldIsDocumented: the table in docs/reference/logs.md has the fields that the code
// writes, and no others.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "logs.md"))
	require.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	used := map[string]bool{}
	for _, key := range written {
		used[key] = true
	}
	for _, folder := range programs {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			// The lab is none of the programs, and the page on a person's own machine logs for that person.
			others := path == filepath.Join(root, "internal", "lab") || path == filepath.Join(root, "internal", "ui")
			if err == nil && d.IsDir() && (others || d.Name() == "testdata") {
				return fs.SkipDir
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return fieldsOf(t, path, used)
		})
		require.NoError(t, err)
	}
	slices.Sort(documented)
	require.Equal(t, slices.Sorted(maps.Keys(used)), documented)
}

// fieldsOf collects the keys of the log calls in one file.
func fieldsOf(t *testing.T, path string, used map[string]bool) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !aLog(method.X) {
			return true
		}
		// The arguments before the first key: the message, and of Error the error.
		before, ok := map[string]int{"Info": 1, "Error": 2, "WithValues": 0}[method.Sel.Name]
		if !ok {
			return true
		}
		at := set.Position(call.Pos()).String()
		require.False(t, call.Ellipsis.IsValid(), "%s: write the keys where they can be read", at)
		for i := before; i < len(call.Args); i += 2 {
			literal, ok := call.Args[i].(*ast.BasicLit)
			require.True(t, ok, "%s: argument %d is a key; write it as a literal", at, i+1)
			key, err := strconv.Unquote(literal.Value)
			require.NoError(t, err, at)
			used[key] = true
		}
		return true
	})
	return nil
}

// aLog says whether the expression is a logr.Logger by its name: log, x.Log, x.Logger, or what a
// method of one returns.
func aLog(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log") || strings.EqualFold(x.Name, "logger")
	case *ast.SelectorExpr:
		return aLog(x.Sel)
	case *ast.CallExpr:
		if method, ok := x.Fun.(*ast.SelectorExpr); ok {
			return aLog(method.X) || aLog(method.Sel)
		}
	}
	return false
}
