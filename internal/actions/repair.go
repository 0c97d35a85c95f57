package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// Repair is the action that requests a repair without a firing alert.
func Repair() *Action {
	return &Action{
		Name: "repair", Verb: admission.VerbFor(remediations.RequestKey), Keys: []string{remediations.RequestKey},
		Will: "Drydock repairs the node although no alert fires, as soon as no guard holds the repair: with one remediation, or with the whole plan of a policy.",
		Parameters: []Parameter{
			{Name: "with", Ask: "Which remediation?", Choices: NodeRemediations()},
			{Name: "policy", Ask: "Or the whole plan of a policy? Its name", Example: "node-not-ready"},
		},
		refuses: repairable,
		prepare: func(given Params, _ time.Time) (apply, error) {
			request, err := requestOf(given["with"], given["policy"])
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, w *Writer, node string) (string, error) {
				err := w.writeAsRead(ctx, node, "requesting a repair of "+node, func(n *corev1.Node) (ruling, error) {
					return ruling{annotations: annotations{remediations.RequestKey: request}}, repairable(n)
				})
				if err != nil {
					return "", err
				}
				return fmt.Sprintf("A repair of %s by %s is requested. It begins when no guard holds it; to follow it: `kubectl drydock status -w`. If Drydock refuses, an Event says why: `kubectl describe node %s`.", node, request, node), nil
			}, nil
		},
	}
}

// NodeRemediations returns the names of the remediations that a person may request for a node.
// Steps that only prepare another step are left out, because alone they repair nothing.
func NodeRemediations() []string {
	return slices.DeleteFunc(remediations.Registry(nil).Names(), func(name string) bool {
		r := remediations.Shipped()[name]
		return r.Target != remediations.KindNode || !r.Once || r.ClusterWide
	})
}

// requestOf does not check that the policy exists: only Drydock knows its policies.
func requestOf(with, policy string) (string, error) {
	known, shipped := remediations.Shipped()[with]
	switch {
	case with != "" && policy != "":
		return "", errors.New("--with and --policy were both given; give one of them")
	case with == "" && policy == "":
		return "", cli.Usage(errors.New("give --with REMEDIATION or --policy NAME"))
	case policy != "":
		return "policy/" + policy, nil
	case shipped && !known.Once && known.Target == remediations.KindNode:
		return "", fmt.Errorf("%s only prepares another step and cures nothing alone; request a policy that has this step with --policy, or use kubectl %s", with, with)
	case !slices.Contains(NodeRemediations(), with):
		return "", fmt.Errorf("there is no remediation %q of a node; there are %s", with, strings.Join(NodeRemediations(), ", "))
	}
	return "remediation/" + with, nil
}

// repairable returns why Drydock would refuse a request. It may still refuse for a reason that the
// Node does not show.
func repairable(n *corev1.Node) error {
	if v, ok := n.Annotations[remediations.RequestKey]; ok {
		return fmt.Errorf("%s is already requested on %s, and Drydock has not answered yet; to withdraw the request: kubectl annotate node %s %s-", v, n.Name, n.Name, remediations.RequestKey)
	}
	j := remediations.ReadJournal(n)
	switch r := j.Record; {
	case j.Malformed != nil:
		return fmt.Errorf("a record on %s cannot be read (%w); to delete it: `kubectl drydock reset %s`", n.Name, j.Malformed, n.Name)
	case r == nil:
	case r.Phase == remediations.PhaseExhausted:
		return fmt.Errorf("repair %s of %s is exhausted; fix the node and run `kubectl drydock reset %s` first", r.ID, n.Name, n.Name)
	case r.Intent != nil || r.Cause.Request != "":
		return fmt.Errorf("repair %s by policy %s is already on %s (%s, %s); wait for its end, or run `kubectl drydock cancel %s`", r.ID, r.Policy, n.Name, r.Phase, r.Step, n.Name)
	}
	return nil
}
