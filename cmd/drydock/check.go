package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/providers/medik8s"
)

const readNodesWithin = 30 * time.Second

func newCheckCommand() *cobra.Command {
	var kubeconfig, management, provider, node string
	var skipFiles bool
	cmd := &cobra.Command{
		Use:   "check FILE|-",
		Short: "Check a configuration and print every fault in it",
		Long: "Check prints FILE:LINE: path: message for every fault, and the exit code is then 1. Without a fault, it prints FILE: ok,\n" +
			"which provider serves which Nodes, and warnings, and the exit code is 0. Check also reads the files that the\n" +
			"configuration names. On a machine without these files, for example a workstation with the configuration that the\n" +
			"chart installed, use --skip-files. With - it reads the configuration from standard input. With\n" +
			"--kubeconfig it also reads the cluster's Nodes. For each step it prints the number of Nodes that each provider serves,\n" +
			"and names three kinds of Nodes: with no provider or several, repaired by another system too, and with a role that may be\n" +
			"a control plane's role under a name that Drydock does not know.\n" +
			"With --provider and --node it checks this provider for the machine of this Node: whether Drydock reaches it, and whether it\n" +
			"accepts the credentials and knows the machine. Check prints the first call that a step would make, and does not send it.\n" +
			"The exit code is 1 if the provider would refuse a step. Requests to the API server have the rights of the kubeconfig.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case provider != "" && kubeconfig == "":
				return cli.Usagef("--provider and --node need --kubeconfig, the cluster that has the Node")
			case provider != "" && skipFiles:
				return cli.Usagef("--provider needs the files that the configuration names: remove --skip-files, or run check where these files are")
			}
			o := config.Options{SkipFiles: skipFiles}
			name, load := args[0], func() (*config.Config, []config.Fault, error) { return config.Load(args[0], o) }
			if name == "-" {
				name, load = "stdin", func() (*config.Config, []config.Fault, error) { return config.Read(cmd.InOrStdin(), o) }
			}
			cfg, warnings, err := load()
			if err != nil {
				return printFaults(cmd.OutOrStdout(), err)
			}
			result := name + ": ok\n"
			if skipFiles {
				result += name + ": not checked, because of --skip-files: the files that the configuration names (tokens, keys, certificates), and whether drydock run can use them\n"
			} else if err := startable(cfg); err != nil {
				return printFaults(cmd.OutOrStdout(), config.Faults{{File: name, Line: 1, Path: "document", Message: "drydock run cannot start with this configuration: " + err.Error()}})
			}
			if _, err := fmt.Fprint(cmd.OutOrStdout(), result); err != nil {
				return fmt.Errorf("printing the result, %w", err)
			}
			for _, p := range cfg.Core.Providers {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: providers.%s carries out %s for %s\n", name, p.Name, strings.Join(p.Steps, ", "), p.Serves()); err != nil {
					return fmt.Errorf("printing the providers, %w", err)
				}
			}
			if cfg.Unused != "" {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", name, cfg.Unused); err != nil {
					return fmt.Errorf("printing the unused settings, %w", err)
				}
			}
			for _, w := range warnings {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), w); err != nil {
					return fmt.Errorf("printing the warnings, %w", err)
				}
			}
			if kubeconfig == "" {
				return nil
			}
			said, sound := func() ([]string, []string, error) {
				return saidOfCluster(cmd.Context(), cmd.ErrOrStderr(), cfg, kubeconfig, management)
			}, true
			if provider != "" {
				said = func() (lines, against []string, err error) {
					lines, sound, err = saidOfMachine(cmd.Context(), cmd.ErrOrStderr(), cfg, kubeconfig, provider, node)
					return lines, nil, err
				}
			}
			plan, against, err := said()
			if err != nil {
				return err
			}
			for _, w := range against {
				plan = append(plan, "warning: "+w)
			}
			for _, line := range plan {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", name, line); err != nil {
					return fmt.Errorf("printing the results about the cluster, %w", err)
				}
			}
			if !sound {
				return cli.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster whose Nodes to check; without it, check reads no cluster")
	cmd.Flags().BoolVar(&skipFiles, "skip-files", false, "do not read the files that the configuration names: tokens, keys and certificates")
	cmd.Flags().StringVar(&provider, "provider", "", "provider to check for the machine of --node, by its key below providers, for example http")
	cmd.Flags().StringVar(&node, "node", "", "Node whose machine the check of --provider is about")
	cmd.MarkFlagsRequiredTogether("provider", "node")
	cmd.Flags().StringVar(&management, "management-kubeconfig", "", "kubeconfig file of Cluster API's management cluster; without it, check reads the file in providers.clusterAPI.kubeconfig")
	return cmd
}

// startable makes the clients of `drydock run`, because only they find unusable files, for example
// a known_hosts file. It sends no requests.
func startable(cfg *config.Config) error {
	p := &program{cfg: cfg, providers: providers, rest: &rest.Config{}, reg: prometheus.NewRegistry(), log: logr.Discard()}
	if err := p.makeClients(); err != nil {
		return err
	}
	_, err := p.newReceiver()
	return err
}

// saidOfCluster compares the configuration with the cluster. plan says which provider would carry
// out each step, and the Nodes that it serves. against has one sentence for each conflict.
func saidOfCluster(ctx context.Context, stderr io.Writer, cfg *config.Config, kubeconfig, management string) (plan, against []string, err error) {
	c, client, err := clusterOf(stderr, kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	objects, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, nil, fmt.Errorf("reading --kubeconfig %s: %w", kubeconfig, err)
	}
	nodes, err := nodesOf(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	others, unread := repairersOf(ctx, client, objects)
	elsewhere, unreadElsewhere := repairersElsewhere(ctx, cfg, management)
	powers, unasked := fenceStates(ctx, cfg, nodes)
	return append(coverage.Plan(cfg.Core, nodes), powers...), slices.Concat(
		coverage.Uncovered(cfg.Core, nodes), coverage.Contested(cfg.Core, nodes, append(others, elsewhere...)),
		coverage.UnknownRoles(nodes), medik8s.Unshared(ctx, client, cfg.Core.Leases), unread, unreadElsewhere, unasked,
	), nil
}

func clusterOf(stderr io.Writer, kubeconfig string) (*rest.Config, kubernetes.Interface, error) {
	c, err := restConfigOf(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	c.Timeout = readNodesWithin
	// The API server's warnings may contain text of other users. By default, the client would log this
	// text unchanged. text.Writer makes it safe for a terminal.
	c.WarningHandler = rest.NewWarningWriter(&text.Writer{Out: stderr}, rest.WarningWriterOptions{Deduplicate: true})
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, nil, fmt.Errorf("reading --kubeconfig %s: %w", kubeconfig, err)
	}
	return c, client, nil
}

func nodesOf(ctx context.Context, client kubernetes.Interface) ([]*corev1.Node, error) {
	var out []*corev1.Node
	o := metav1.ListOptions{Limit: 500}
	for {
		page, err := client.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("reading the cluster's Nodes: %w", err)
		}
		for i := range page.Items {
			out = append(out, &page.Items[i])
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return out, nil
		}
	}
}

func printFaults(out io.Writer, err error) error {
	var faults config.Faults
	if !errors.As(err, &faults) {
		return err
	}
	if _, err := fmt.Fprintln(out, faults); err != nil {
		return fmt.Errorf("printing the faults, %w", err)
	}
	return cli.ErrReported
}
