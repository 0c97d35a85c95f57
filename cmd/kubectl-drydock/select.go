package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
)

func selects(cmd *cobra.Command, selector *string) {
	cmd.Flags().StringVarP(selector, "selector", "l", "", "the nodes with these labels, for example pool=gpu,zone!=a")
}

// selected returns an error if no node matches, because the selector is probably wrong.
func selected(ctx context.Context, r *inspect.Reader, selector string) (names []string, err error) {
	if _, err := labels.Parse(selector); err != nil {
		return nil, cli.Usagef("--selector %q is not a label selector: %w", selector, err)
	}
	err = r.EachNode(ctx, metav1.ListOptions{LabelSelector: selector}, func(n *corev1.Node) error {
		names = append(names, n.Name)
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no node has labels that match %q", selector)
	}
	return names, err
}
