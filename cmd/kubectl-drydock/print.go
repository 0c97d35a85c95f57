package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
)

type output struct {
	format  string
	flags   *genericclioptions.PrintFlags
	columns get.CustomColumnsPrintFlags
	// to is nil if the output is a table. rows is true if the printer gets each repair separately.
	to   printers.ResourcePrinter
	rows bool
	// called is the command that the user typed. Its flags identify the cluster.
	called *cobra.Command
}

func (o *output) bind(cmd *cobra.Command) {
	o.called, o.flags = cmd, genericclioptions.NewPrintFlags("")
	o.flags.NamePrintFlags = nil // this format needs objects with a name, and the plugin prints none
	o.flags.OutputFormat = &o.format
	o.flags.AddFlags(cmd)
	_ = cmd.Flags().MarkHidden("show-managed-fields")
	cmd.Flags().Lookup("output").Usage = "wide, json, yaml, jsonpath=…, go-template=… or custom-columns=… as in kubectl; without it, a table"
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{
		"wide", "json", "yaml", "jsonpath=", "jsonpath-as-json=", "jsonpath-file=", "go-template=", "go-template-file=", "custom-columns=", "custom-columns-file=",
	}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

func (o *output) check() error {
	if o.format == "" || o.format == "wide" {
		return nil
	}
	to, err := o.columns.ToPrinter(o.format)
	o.rows = err == nil
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		to, err = o.flags.ToPrinter()
	}
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return cli.Usagef("--output is %q; write wide, json, yaml, jsonpath=…, go-template=… or custom-columns=…", o.format)
	case err != nil:
		return cli.Usagef("--output: %w", err)
	}
	o.to = to
	return nil
}

func (o *output) wide() bool { return o.format == "wide" }

// print replaces invisible characters by \u escapes in JSON, and by U+FFFD in all other formats.
func (o *output) print(v any, out io.Writer) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	commands := commandsOf(o.called)
	fit := commands.In
	if o.format == "json" {
		out = text.JSONWriter{Out: out}
	} else {
		fit = func(s string) string { return text.Visible(commands.In(s)) }
	}
	object.Object, _ = eachText(object.Object, fit).(map[string]any)
	printed := runtime.Object(object)
	if o.rows {
		printed = repairsOf(object)
	}
	if err := o.to.PrintObj(printed, out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func repairsOf(object *unstructured.Unstructured) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": inspect.APIVersion, "kind": "RepairList"}}
	repairs, _, _ := unstructured.NestedSlice(object.Object, "repairs")
	for _, r := range repairs {
		if one, ok := r.(map[string]any); ok {
			one["apiVersion"], one["kind"] = inspect.APIVersion, "Repair"
			list.Items = append(list.Items, unstructured.Unstructured{Object: one})
		}
	}
	return list
}

func eachText(v any, fit func(string) string) any {
	switch v := v.(type) {
	case string:
		return fit(v)
	case []any:
		for i := range v {
			v[i] = eachText(v[i], fit)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, one := range v {
			out[fit(k)] = eachText(one, fit)
		}
		return out
	}
	return v
}

// table keeps the widths of its columns, so that later rows stay aligned.
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

// cells makes an empty cell a dash, so that scripts find each value in the same column.
func cells(row ...string) []string {
	for i, cell := range row {
		if row[i] = plain(cell); row[i] == "" {
			row[i] = "-"
		}
	}
	return row
}
