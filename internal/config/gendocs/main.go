// Gendocs writes the files that are generated from the configuration's schema:
// docs/configuration.md, the schema for editors, and the part of the chart's schema about the value
// config.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"drydock.dev/drydock/internal/config"
)

//go:embed head.md
var head string

// These files are relative to the project's folder.
const (
	pageFile   = "docs/configuration.md"
	editorFile = "docs/config.schema.json"
	chartFile  = "charts/drydock/values.schema.json"
)

func main() {
	if len(os.Args) > 2 {
		fmt.Fprintln(os.Stderr, "usage: gendocs [FOLDER OF THE PROJECT]")
		os.Exit(2)
	}
	root := "."
	if len(os.Args) == 2 {
		root = os.Args[1]
	}
	if err := generate(root); err != nil {
		fmt.Fprintf(os.Stderr, "writing the files that are generated from the schema, %v\n", err)
		os.Exit(1)
	}
}

func generate(root string) error {
	files, err := generated(root)
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), text, 0o644) //nolint:gosec // everyone may read documentation
		}
	}
	return err
}

func generated(root string) (map[string][]byte, error) {
	values, err := os.ReadFile(filepath.Join(root, chartFile))
	if err != nil {
		return nil, err
	}
	chart, err := chartSchema(values)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{pageFile: page(), editorFile: editorSchema(), chartFile: chart}, nil
}

func page() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, head, strings.TrimSpace(config.SmallestExample), strings.TrimSpace(config.FullExample))
	const columns = "\n| key | type | default | meaning |\n|---|---|---|---|\n"
	out.WriteString(columns)
	for _, k := range config.Keys() {
		if nested := strings.ContainsAny(k.Path, ".["); !nested && k.HasKeys {
			fmt.Fprintf(&out, "\n### %s\n\n%s\n%s", k.Path, k.Description, columns)
			continue
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", k.Path, cell(k.Type), fallback(k), cell(k.Description))
	}
	return out.Bytes()
}

func fallback(k config.Key) string {
	switch {
	case k.Required:
		return "required"
	case k.Default == "":
		return ""
	case k.Default == `""`:
		return "empty"
	case strings.Contains(k.Default, " for ") || strings.HasPrefix(k.Default, "the value of "):
		return cell(k.Default)
	default:
		return "`" + cell(k.Default) + "`"
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
