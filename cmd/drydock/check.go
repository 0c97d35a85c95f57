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

// readNodesWithin bounds one request that lists Nodes.
const readNodesWithin = 30 * time.Second

func newCheckCommand() *cobra.Command {
	var kubeconfig, management, provider, node string
	var skipFiles bool
	cmd := &cobra.Command{
		Use:   "check FILE|-",
		Short: "Check a configuration and say everything that is wrong with it",
		Long: "Check prints FILE:LINE: path: message for every fault, and the exit code is then 1. Without a fault, it prints FILE: ok,\n" +
			"which provider serves which Nodes, and warnings, and the exit code is 0. Check also looks at the files that the\n" +
			"configuration names. On a machine without these files, for example a workstation with the configuration that the\n" +
			"chart installed, use --skip-files. With - it reads the configuration from standard input. With\n" +
			"--kubeconfig it also reads the cluster's Nodes. It says for each step on how many Nodes each provider carries it out,\n" +
			"and names the Nodes without exactly one provider, those that another system also repairs, and those with a role that may be\n" +
			"of the control plane under a name that Drydock does not know.\n" +
			"With --provider and --node it asks this provider about the machine of this Node: whether it can be reached, accepts the\n" +
			"credentials and knows the machine. It prints what the first call would send, and sends nothing that changes anything.\n" +
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
					return fmt.Errorf("printing what is not used, %w", err)
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
					return fmt.Errorf("printing what the cluster says, %w", err)
				}
			}
			if !sound {
				return cli.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster whose Nodes are checked; without it, no Node is checked")
	cmd.Flags().BoolVar(&skipFiles, "skip-files", false, "do not look at the files that the configuration names: tokens, keys and certificates")
	cmd.Flags().StringVar(&provider, "provider", "", "provider that is asked about the machine of --node, by its key below providers, for example http")
	cmd.Flags().StringVar(&node, "node", "", "Node whose machine --provider is asked about")
	cmd.MarkFlagsRequiredTogether("provider", "node")
	cmd.Flags().StringVar(&management, "management-kubeconfig", "", "kubeconfig file of the management cluster that providers.clusterAPI.kubeconfig is for; without it that file is read")
	return cmd
}

// startable makes the clients that drydock run makes at its start. Only they know whether a file is
// usable, for example a known_hosts file. It makes no requests.
func startable(cfg *config.Config) error {
	p := &program{cfg: cfg, providers: providers, rest: &rest.Config{}, reg: prometheus.NewRegistry(), log: logr.Discard()}
	if err := p.makeClients(); err != nil {
		return err
	}
	_, err := p.newReceiver()
	return err
}

// saidOfCluster compares the configuration with the cluster. plan is which provider would carry out
// which step on the cluster's Nodes. against is what in the cluster conflicts with the
// configuration, one sentence each.
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

// clusterOf returns a client for the cluster of the kubeconfig.
func clusterOf(stderr io.Writer, kubeconfig string) (*rest.Config, kubernetes.Interface, error) {
	c, err := restConfigOf(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	c.Timeout = readNodesWithin
	// Warnings of the API server may have text from other users; the client's default is a log line
	// that quotes the text.
	c.WarningHandler = rest.NewWarningWriter(&text.Writer{Out: stderr}, rest.WarningWriterOptions{Deduplicate: true})
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, nil, fmt.Errorf("reading --kubeconfig %s: %w", kubeconfig, err)
	}
	return c, client, nil
}

// nodesOf lists all Nodes of the cluster.
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

// printFaults prints the faults of a configuration, one per line, and returns the error that ends
// the process with 1.
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
