// Reference writes docs/metrics.md from the code that defines the metrics.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/remediations/signs"
)

//go:embed head.md
var head string

const pageFile = "docs/metrics.md"

func main() {
	if len(os.Args) > 2 {
		fmt.Fprintln(os.Stderr, "usage: reference [FOLDER OF THE PROJECT]")
		os.Exit(2)
	}
	root := "."
	if len(os.Args) == 2 {
		root = os.Args[1]
	}
	text, err := page(root)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, pageFile), []byte(text), 0o644) //nolint:gosec // everyone may read documentation
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "writing %s: %v\n", pageFile, err)
		os.Exit(1)
	}
}

func page(root string) (string, error) {
	in := func(folders ...string) (out []string) {
		for _, f := range folders {
			out = append(out, filepath.Join(root, f))
		}
		return out
	}
	drydock, err := metricsOf(in("cmd/drydock", "receiver", "remediations", "webhook")...)
	if err != nil {
		return "", err
	}
	agent, err := metricsOf(in("cmd/drydock-agent", "internal/mesh")...)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("\n## Drydock\n\n")
	table(&b, drydock)
	b.WriteString("\n## The agent of a mesh\n\n")
	table(&b, agent)
	b.WriteString("\n## Values of labels\n\n| label | values |\n|---|---|\n")
	row(&b, "`outcome` of repairs", quoted(remediations.Outcomes))
	row(&b, "`outcome` of steps", "`accepted`, `refused`, `unknown`: what the provider answered. `refused` includes calls that Drydock [withheld](operate/hold-reasons.md#callwithheld), which cost no attempt")
	row(&b, "`phase`", quoted([]remediations.Phase{remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted}))
	row(&b, "`reason` of holds", quoted(remediations.Reasons)+"; [hold-reasons.md](operate/hold-reasons.md) explains each")
	row(&b, "`reason` of signs", quoted(signs.Reasons))
	row(&b, "`state` of the self-test", quoted(selftest.States))
	return b.String(), nil
}

func table(b *strings.Builder, metrics []metric) {
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics {
		_, _ = fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, quoted(m.labels), m.help)
	}
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func quoted[T ~string](values []T) string {
	var out []string
	for _, v := range values {
		out = append(out, "`"+string(v)+"`")
	}
	return strings.Join(out, ", ")
}
