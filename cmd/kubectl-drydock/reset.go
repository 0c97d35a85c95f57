package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
)

func (p *plugin) newResetCommand() *cobra.Command {
	var policy string
	cmd := &cobra.Command{
		Use:   "reset NODE | --policy NAME",
		Short: "Forget a repair that ran out of steps, once the node is mended",
		Long: "Reset forgets the exhausted repair of a node, or a record on it that nobody can read, with what was counted for it,\n" +
			"and lets its policy go on if it had been stopped. With --policy it does so for one exhausted node of that policy,\n" +
			"which is what lets a stopped policy go on.",
		Example: "  kubectl drydock reset node-3\n  kubectl drydock reset --policy node-not-ready",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && policy != "":
				return errors.New("a node and --policy were both given, and only one of them can be meant")
			case len(args) == 0 && policy == "":
				return cli.Usage(errors.New("say what is to be reset: a node, or --policy NAME"))
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			if policy != "" {
				return p.resetPolicy(cmd.Context(), c, policy)
			}
			return p.resetNode(cmd.Context(), c, args[0], "")
		},
	}
	cmd.Flags().StringVar(&policy, "policy", "", "reset one exhausted node of this policy")
	return cmd
}

// resetNode writes the reset, where there is something to forget. of names the policy that it must be of; empty: any.
func (p *plugin) resetNode(ctx context.Context, c client, node, of string) error {
	var what, policy string
	_, err := p.writeAsRead(ctx, c, node, "resetting "+node, func(n *corev1.Node) (ruling, error) {
		about, err := resettable(n, of)
		if err != nil {
			return ruling{}, err
		}
		if about == nil {
			what, policy = "What nobody can read", ""
			return ruling{word: word{remediations.ResetKey: "true"}, about: "unreadable"}, nil
		}
		what, policy = "The exhausted repair "+about.ID, about.Policy
		return ruling{word: word{remediations.ResetKey: "true"}, about: about.ID}, nil
	})
	if err != nil {
		return err
	}
	if policy != "" {
		p.say("%s on %s is about to be forgotten, with its counts and the cordon if Drydock set it, and policy %s goes on if it was stopped; `kubectl drydock status` shows when it is gone.", what, node, policy)
		return nil
	}
	p.say("%s on %s is about to be dropped, and Drydock goes on with the node; an Event and `kubectl drydock history %s` keep what it said.", what, node, node)
	return nil
}

// resettable is the exhausted repair, or nil where the record cannot be read; an error where there is neither.
func resettable(n *corev1.Node, of string) (*remediations.Record, error) {
	j := remediations.ReadJournal(n)
	switch r := j.Record; {
	case j.Malformed != nil && of == "":
		return nil, nil
	case r == nil:
		return nil, fmt.Errorf("there is no exhausted repair on %s, and none that cannot be read: nothing is there to reset", n.Name)
	case r.Phase != remediations.Exhausted:
		return nil, fmt.Errorf("repair %s of %s is %s and not exhausted; to end it, `kubectl drydock cancel %s`", r.ID, n.Name, r.Phase, n.Name)
	case of != "" && r.Policy != of:
		return nil, fmt.Errorf("the exhausted repair %s of %s is by policy %s, not by %s", r.ID, n.Name, r.Policy, of)
	default:
		return r, nil
	}
}

// resetPolicy resets one exhausted node of the policy: the first by name.
func (p *plugin) resetPolicy(ctx context.Context, c client, policy string) error {
	nodes, err := c.Nodes().List(ctx, metav1.ListOptions{LabelSelector: remediations.PhaseLabel + "=" + string(remediations.Exhausted)})
	if err != nil {
		return asking(err, "listing the exhausted nodes", "")
	}
	for i := range nodes.Items {
		if _, err := resettable(&nodes.Items[i], policy); err == nil {
			return p.resetNode(ctx, c, nodes.Items[i].Name, policy)
		}
	}
	return fmt.Errorf("no node has an exhausted repair by policy %s; `kubectl drydock status` shows which policies are stopped", policy)
}
