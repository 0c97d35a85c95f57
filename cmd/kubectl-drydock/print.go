package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/text"
)

// output is the value of -o.
type output string

func (o *output) bind(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(o), "output", "o", "", "wide, json or yaml; without it, a table")
}

func (o output) check() error {
	switch o {
	case "", "wide", "json", "yaml":
		return nil
	}
	return cli.Usagef("--output is %q; write wide, json or yaml", string(o))
}

func (o output) wide() bool { return o == "wide" }

// printer prints objects, or is nil where a table is wanted.
func (o output) printer() printers.ResourcePrinter {
	switch o {
	case "json":
		return &printers.JSONPrinter{}
	case "yaml":
		return &printers.YAMLPrinter{}
	}
	return nil
}

// printObject prints v, which has an apiVersion and a kind, as kubectl prints objects. Characters that do not show are \u
// escapes in JSON. YAML cannot hold all of them, so there they are U+FFFD.
func printObject(to printers.ResourcePrinter, v any, out io.Writer) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &o.Object); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if _, yaml := to.(*printers.YAMLPrinter); yaml {
		o.Object, _ = visible(o.Object).(map[string]any)
	} else {
		out = text.JSONWriter{Out: out}
	}
	if err := to.PrintObj(o, out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// visible makes every text in v, which is decoded JSON, fit for YAML and for a terminal.
func visible(v any) any {
	switch v := v.(type) {
	case string:
		return text.Visible(v)
	case []any:
		for i := range v {
			v[i] = visible(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, one := range v {
			out[text.Visible(k)] = visible(one)
		}
		return out
	}
	return v
}

// table aligns rows. It remembers how wide its columns were, so that rows added later stay below the earlier ones.
type table struct {
	out    io.Writer
	widths []int
}

const gap = 3

func (t *table) print(rows ...[]string) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+gap))
		}
		fmt.Fprintln(t.out, strings.TrimRight(line.String(), " "))
	}
}

// cells makes a row; what is empty shows as a dash, so that columns can be counted.
func cells(row ...string) []string {
	for i, cell := range row {
		if row[i] = plain(cell); row[i] == "" {
			row[i] = "-"
		}
	}
	return row
}
