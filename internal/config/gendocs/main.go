// Gendocs writes docs/configuration.md from the schema of the configuration.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"strings"

	"drydock.dev/drydock/internal/config"
)

//go:embed head.md
var head string

func main() {
	if len(os.Args) > 2 {
		fmt.Fprintln(os.Stderr, "usage: gendocs [FILE]")
		os.Exit(2)
	}
	file := "docs/configuration.md"
	if len(os.Args) == 2 {
		file = os.Args[1]
	}
	if err := os.WriteFile(file, page(), 0o644); err != nil { //nolint:gosec // A page of documentation is for everybody.
		fmt.Fprintf(os.Stderr, "writing documentation, %v\n", err)
		os.Exit(1)
	}
}

// page returns the whole of docs/configuration.md.
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
