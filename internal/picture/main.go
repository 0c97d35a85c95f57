// Command picture draws docs/images/terminal.svg, the README's picture of a terminal. The text in
// the picture is a golden file of the plugin's tests.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	golden  = "cmd/kubectl-drydock/testdata/terminal.golden"
	picture = "docs/images/terminal.svg"
)

//go:embed terminal.svg.tmpl
var page string

// line is a text, or a part of one that is too long for the terminal. Rest is true for each part
// except the first.
type line struct {
	Text          string
	Command, Rest bool
	Y, Length     int
}

const (
	columns    = 116
	glyph      = 8
	lineHeight = 19
	above      = 62
)

func shown(output string) []string {
	head, _, cut := strings.Cut(output, "\n\nGUARD ")
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	if cut {
		lines = append(lines, "", "…")
	}
	return lines
}

func wrapped(output string) []line {
	var out []line
	for _, text := range shown(output) {
		command := strings.HasPrefix(text, "$ ")
		for rest := false; ; rest = true {
			part := text
			if utf8.RuneCountInString(text) > columns {
				part = string([]rune(text)[:columns])
			}
			out = append(out, line{Text: part, Command: command, Rest: rest, Y: above + lineHeight*len(out), Length: glyph * utf8.RuneCountInString(part)})
			if text = text[len(part):]; text == "" {
				break
			}
		}
	}
	return out
}

func draw(output string) ([]byte, error) {
	t, err := template.New("terminal").Parse(page)
	if err != nil {
		return nil, fmt.Errorf("parsing terminal.svg.tmpl: %w", err)
	}
	lines := wrapped(output)
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"Lines": lines, "Width": columns*glyph + 48, "Height": above + lineHeight*len(lines) + 8})
	return b.Bytes(), err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	output, err := os.ReadFile(golden)
	if err != nil {
		return fmt.Errorf("%w: run this in the checkout's root", err)
	}
	drawn, err := draw(string(output))
	if err != nil {
		return err
	}
	return os.WriteFile(picture, drawn, 0o644) //nolint:gosec // a page's picture is for everybody
}
