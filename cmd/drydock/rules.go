package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/rules"
)

func newRulesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rules [NAME]",
		Short: "Print the alerting rules that come with Drydock",
		Long: "Rules prints all rules as one rule file, which Prometheus and promtool read unchanged. With a name it prints the file\n" +
			"of this alert alone.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := rules.Names()
			if err != nil {
				return err
			}
			text, err := ruleText(files, args)
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(text); err != nil {
				return fmt.Errorf("printing rules, %w", err)
			}
			return nil
		},
	}
}

// ruleText returns the rule file that args name, unchanged. Without args, it merges all files:
// Prometheus reads only the first YAML document of a file.
func ruleText(files, args []string) ([]byte, error) {
	if len(args) == 1 {
		file := strings.TrimSuffix(args[0], ".yaml") + ".yaml"
		if !slices.Contains(files, file) {
			return nil, cli.Usagef("there is no rule file %q; the rule files are %s", args[0], strings.ReplaceAll(strings.Join(files, ", "), ".yaml", ""))
		}
		return rules.Read(file)
	}
	var out bytes.Buffer
	out.WriteString("groups:\n")
	for _, file := range files {
		data, err := rules.Read(file)
		if err != nil {
			return nil, err
		}
		comment, groups, _ := bytes.Cut(data, []byte("groups:\n"))
		fmt.Fprintf(&out, "\n# rules/%s\n%s%s\n", file, comment, bytes.TrimSpace(groups))
	}
	return out.Bytes(), nil
}
