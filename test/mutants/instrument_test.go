package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSwitchIsTheChange runs a small function with all inputs. It compares the mutants behind the
// switch with mutants that are written into the source, and with the mutants that are noted as
// reached.
func TestSwitchIsTheChange(t *testing.T) {
	all, err := mutants([]string{"testdata/sample/sample.go"})
	require.NoError(t, err)
	require.Len(t, all, 44)
	dir := t.TempDir()
	_, err = instrument(all, dir)
	require.NoError(t, err)
	// The overlay is not needed here, because the program is in one folder.
	files := map[string]string{"go.mod": "module sample\n\ngo 1.24\n"}
	for from, to := range map[string]string{"0.go": "sample.go", "1.go": "switch.go"} {
		text, err := os.ReadFile(filepath.Join(dir, from))
		require.NoError(t, err)
		files[to] = string(text)
	}
	var calls strings.Builder
	for i, m := range all {
		text := string(m.source[:m.from]) + "(" + m.text + ")" + string(m.source[m.to:])
		text = strings.ReplaceAll(strings.ReplaceAll(text, "sample(", fmt.Sprintf("sample%d(", i)), "rich(", fmt.Sprintf("rich%d(", i))
		files[fmt.Sprintf("changed%d.go", i)] = text
		fmt.Fprintf(&calls, "sample%d, ", i)
	}
	files["main.go"] = strings.Replace(compare, "CHANGED", calls.String(), 1)
	program := filepath.Join(dir, "program")
	require.NoError(t, os.Mkdir(program, 0o700))
	for name, text := range files {
		text = strings.Replace(text, "package sample", "package main", 1)
		require.NoError(t, os.WriteFile(filepath.Join(program, name), []byte(text), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = program
	cmd.Env = append(os.Environ(), envNotes+"="+filepath.Join(dir, "notes"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "43 of 44 mutants change a result\n", string(out))
}

const compare = `package main

import "fmt"

type function func(a, b int, n *int) string

func call(f function, a, b int, n *int) (out string) {
	defer func() {
		if r := recover(); r != nil {
			out = "panic"
		}
	}()
	return f(a, b, n)
}

func main() {
	zero, two := 0, 2
	changed := []function{CHANGED}
	differs := map[int]bool{}
	for a := range 3 {
		for b := range 4 {
			for _, n := range []*int{nil, &zero, &two} {
				for i := range mutantNoted {
					mutantNoted[i].Store(false)
				}
				mutantOn = -1
				plain := call(sample, a, b, n)
				for i, f := range changed {
					want := call(f, a, b, n)
					mutantOn = i
					if got := call(sample, a, b, n); got != want {
						panic(fmt.Sprint("mutant ", i, " with ", a, b, n, " gives ", got, ", want ", want))
					}
					mutantOn = -1
					if want != plain {
						differs[i] = true
						if !mutantNoted[i].Load() {
							panic(fmt.Sprint("mutant ", i, " with ", a, b, n, " changes the result and is not noted"))
						}
					}
				}
			}
		}
	}
	fmt.Println(len(differs), "of", len(changed), "mutants change a result")
}
`
