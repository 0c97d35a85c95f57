package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
)

func (p *plugin) newRepairCommand() *cobra.Command {
	var with, policy string
	cmd := &cobra.Command{
		Use:     "repair NODE --with REMEDIATION | --policy NAME",
		Short:   "Ask for a repair of a node now, though no alert fires",
		Long:    "Repair asks for one remediation, or for the whole plan of a policy. It goes through every guard but the alert's: it\nwaits where a silence, a limit or a breaker holds it.",
		Example: "  kubectl drydock repair node-3 --with reboot\n  kubectl drydock repair node-3 --policy node-not-ready",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := requestOf(with, policy)
			if err != nil {
				return err
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			node := args[0]
			_, err = p.writeAsRead(cmd.Context(), c, node, "asking for a repair of "+node, func(n *corev1.Node) (ruling, error) {
				return ruling{word: word{remediations.RequestKey: request}}, repairable(n)
			})
			if err != nil {
				return err
			}
			p.say("A repair of %s by %s is asked for: it begins as soon as no guard holds it, as `kubectl drydock status -w` shows; a refusal is an Event, as `kubectl describe node %s` shows.", node, request, node)
			return nil
		},
	}
	cmd.Flags().StringVar(&with, "with", "", "the remediation: "+strings.Join(nodeRemediations(), ", "))
	cmd.Flags().StringVar(&policy, "policy", "", "the policy whose plan is to be carried out")
	return cmd
}

func nodeRemediations() []string {
	return slices.DeleteFunc(remediations.Registry(nil).Names(), func(name string) bool {
		r := remediations.Shipped()[name]
		return r.Target != remediations.KindNode || r.ClusterWide
	})
}

// requestOf is the annotation's value. Which policies there are, only Drydock knows.
func requestOf(with, policy string) (string, error) {
	switch {
	case with != "" && policy != "":
		return "", errors.New("--with and --policy were both given, and only one of them can be meant")
	case with == "" && policy == "":
		return "", cli.Usage(errors.New("say what is to be done: --with REMEDIATION or --policy NAME"))
	case policy != "":
		return "policy/" + policy, nil
	case !slices.Contains(nodeRemediations(), with):
		return "", fmt.Errorf("there is no remediation %q of a node; there are %s", with, strings.Join(nodeRemediations(), ", "))
	}
	return "remediation/" + with, nil
}

// repairable says why Drydock would refuse a request on this node, as far as the Node shows it.
func repairable(n *corev1.Node) error {
	if v, ok := n.Annotations[remediations.RequestKey]; ok {
		return fmt.Errorf("%s is asked for on %s already and not answered yet; to take it back: kubectl annotate node %s %s-", v, n.Name, n.Name, remediations.RequestKey)
	}
	j := remediations.ReadJournal(n)
	switch r := j.Record; {
	case j.Malformed != nil:
		return fmt.Errorf("what is recorded on %s cannot be read (%w); `kubectl drydock reset %s` drops it", n.Name, j.Malformed, n.Name)
	case r == nil:
	case r.Phase == remediations.Exhausted:
		return fmt.Errorf("repair %s of %s has run out of steps; mend the node and `kubectl drydock reset %s` first", r.ID, n.Name, n.Name)
	case r.Intent != nil || r.Cause.Request != "":
		return fmt.Errorf("repair %s by policy %s is under way on %s (%s, %s); wait for its end, or `kubectl drydock cancel %s`", r.ID, r.Policy, n.Name, r.Phase, r.Step, n.Name)
	}
	return nil
}
