package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type insertions struct {
	open, closing map[int]string
	replace       map[int]operator
}

type operator struct {
	length int
	text   string
}

// The caller inserts outer expressions before inner ones.
func (in *insertions) around(from, to int, before, after string) {
	in.open[from] += before
	in.closing[to] = after + in.closing[to]
}

func (in *insertions) apply(source []byte) []byte {
	var out bytes.Buffer
	for i := 0; i <= len(source); i++ {
		out.WriteString(in.closing[i])
		out.WriteString(in.open[i])
		if op, ok := in.replace[i]; ok {
			out.WriteString(op.text)
			i += op.length
			out.WriteString(in.closing[i])
			out.WriteString(in.open[i])
		}
		if i < len(source) {
			out.WriteByte(source[i])
		}
	}
	return out.Bytes()
}

var comparisons = map[token.Token]string{
	token.LSS: "mutantLess", token.LEQ: "mutantAtMost",
	token.GTR: "mutantMore", token.GEQ: "mutantAtLeast",
}

// Each mutant is off until the environment contains its number, which begins with first. The line
// numbers of the source stay the same.
func instrumented(of []mutant, first int) []byte {
	in := &insertions{map[int]string{}, map[int]string{}, map[int]operator{}}
	for i, m := range of {
		id := strconv.Itoa(first + i)
		switch m.kind {
		case never:
			next := strconv.Itoa(first + i + 1)
			in.around(m.from, m.to, "mutantHolds("+id+", "+next+", mutantIs("+id+", "+next+") || (", "))")
		case always: // one with the one before
		case flipped:
			in.around(m.from, m.to, "mutantFlips("+id+", ", ")")
		case bounded:
			in.around(m.from, m.to, comparisons[m.operator]+"("+id+", ", ")")
			in.replace[m.at] = operator{len(m.operator.String()), ","}
		case joined:
			// By De Morgan, !(!a && !b) is a || b, and !(!a || !b) is a && b.
			or := strconv.FormatBool(m.operator == token.LOR)
			side, end := "mutantSide("+id+", "+or+", ", ")"
			in.around(m.from, m.to, "mutantNot("+id+", "+side, end+end)
			in.replace[m.at] = operator{2, end + " " + m.operator.String() + " " + side}
		case dropped:
			// The mutant does not evaluate the side that it leaves out. So code that this side
			// guards runs.
			call := "mutantDrops(" + id + ", true, mutantOn == " + id + " || ("
			if m.operator == token.LOR {
				call = "mutantDrops(" + id + ", false, mutantOn != " + id + " && ("
			}
			in.around(m.from, m.to, call, "))")
		}
	}
	return in.apply(of[0].source)
}

// The changed files and the switch of each package are written into dir. With the overlay file the
// compiler uses them, and the files in the work tree stay as they are.
func instrument(all []mutant, dir string) (overlay string, err error) {
	replace := map[string]string{}
	write := func(name string, source []byte) error {
		original, err := filepath.Abs(name)
		if err != nil {
			return fmt.Errorf("finding %s: %w", name, err)
		}
		replace[original] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[original], source, 0o600); err != nil {
			return fmt.Errorf("writing the mutants of %s: %w", name, err)
		}
		return nil
	}
	var folders []string
	for first := 0; first < len(all); {
		m, after := all[first], first
		for after < len(all) && all[after].file == m.file {
			after++
		}
		if err := write(m.file, instrumented(all[first:after], first)); err != nil {
			return "", err
		}
		if folder := filepath.Dir(m.file); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
			source := strings.Replace(switchSource, "package mutants", "package "+filepath.Base(folder), 1)
			source = strings.ReplaceAll(source, "MUTANTS", strconv.Itoa(len(all)))
			if err := write(filepath.Join(folder, "mutant_switch.go"), []byte(source)); err != nil {
				return "", err
			}
		}
		first = after
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	return overlay, nil
}
