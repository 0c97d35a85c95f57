package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/cli"
)

// selects gives the command kubectl's flag for choosing nodes by their labels.
func selects(cmd *cobra.Command, selector *string) {
	cmd.Flags().StringVarP(selector, "selector", "l", "", "the nodes with these labels, such as pool=gpu,zone!=a")
}

// selected are the names of the nodes that the selector matches. That none does is an error: nobody asks for nothing.
func selected(ctx context.Context, c client, selector string) (names []string, err error) {
	if _, err := labels.Parse(selector); err != nil {
		return nil, cli.Usagef("--selector %q is not a label selector: %w", selector, err)
	}
	err = eachNode(ctx, c, metav1.ListOptions{LabelSelector: selector}, func(n *corev1.Node) error {
		names = append(names, n.Name)
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no node has labels that match %q", selector)
	}
	return names, err
}

// nodesPerPage bounds one answer of the API server.
const nodesPerPage = 500

// eachNode calls do for each Node, page by page.
func eachNode(ctx context.Context, c client, o metav1.ListOptions, do func(*corev1.Node) error) error {
	o.Limit = nodesPerPage
	for {
		page, err := c.Nodes().List(ctx, o)
		if err != nil {
			return asking(err, "listing the nodes", "")
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}
