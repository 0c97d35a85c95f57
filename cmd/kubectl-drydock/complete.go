package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

const (
	// completer is the name of the program that kubectl runs to complete the plugin's arguments.
	completer = "kubectl_complete-drydock"
	// A person waits for a completion.
	completeWithin = 3 * time.Second
	// many is the limit of arguments for a command that takes any number of nodes.
	many        = 1 << 30
	underRepair = remediations.PhaseLabel
)

// calledAs returns the arguments for cobra. kubectl runs this program under the name completer to
// complete a command line. The arguments then become those of cobra's completion command.
func calledAs(program string, args []string) []string {
	if strings.TrimSuffix(filepath.Base(program), ".exe") != completer {
		return args
	}
	return append([]string{cobra.ShellCompRequestCmd}, args...)
}

// completes adds shell completion. It offers only nodes that match the selector. The parameter most
// limits their number.
func (p *plugin) completes(cmd *cobra.Command, most int, selector string) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.completed(cmd.Context(), func(ctx context.Context, c inspect.Client) (names []string, err error) {
			err = p.reader(c).EachNode(ctx, metav1.ListOptions{LabelSelector: selector}, func(n *corev1.Node) error {
				if strings.HasPrefix(n.Name, prefix) && !slices.Contains(args, n.Name) {
					names = append(names, n.Name)
				}
				return nil
			})
			return names, err
		})
	}
	if cmd.Flags().Lookup("with") != nil {
		_ = cmd.RegisterFlagCompletionFunc("with", cobra.FixedCompletions(actions.NodeRemediations(), cobra.ShellCompDirectiveNoFileComp))
	}
	if cmd.Flags().Lookup("policy") != nil {
		_ = cmd.RegisterFlagCompletionFunc("policy", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return p.completed(cmd.Context(), policies)
		})
	}
	return cmd
}

// completed cannot show an error to the user: cobra writes it to the file in BASH_COMP_DEBUG_FILE.
func (p *plugin) completed(ctx context.Context, ask func(context.Context, inspect.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	c, err := p.connect()
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := ask(ctx, c)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// policies includes those of the installed configuration if it can be read.
func policies(ctx context.Context, c inspect.Client) (names []string, err error) {
	type policy struct{ Name string }
	shipped := remediations.ShippedPolicies()
	files, err := fs.Glob(shipped, "*.yaml")
	if err != nil {
		return nil, err
	}
	add := func(ps []policy) {
		for _, p := range ps {
			names = append(names, plain(p.Name))
		}
	}
	for _, f := range files {
		text, err := fs.ReadFile(shipped, f)
		if err != nil {
			return nil, err
		}
		var ps []policy
		if err := yaml.Unmarshal(text, &ps); err != nil {
			return nil, err
		}
		add(ps)
	}
	maps, err := c.ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=drydock"})
	if err != nil {
		return names, err
	}
	for _, cm := range maps.Items {
		var configured struct{ Policies []policy }
		if yaml.Unmarshal([]byte(cm.Data["drydock.yaml"]), &configured) == nil {
			add(configured.Policies)
		}
	}
	return names, nil
}
