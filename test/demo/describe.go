package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// describe prints what `kubectl describe node` shows: the annotations, the Ready condition and the
// Events.
func describe(ctx context.Context, l *lab.Lab) error {
	node, err := l.Client().CoreV1().Nodes().Get(ctx, broken, metav1.GetOptions{})
	if err != nil {
		return err
	}
	events, err := l.Client().CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + broken})
	if err != nil {
		return fmt.Errorf("reading the Events of %s: %w", broken, err)
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return seen(a).Compare(seen(b).Time) })
	fmt.Printf("\nThe whole story is on the Node, where kubectl describe node %s shows it:\n\nAnnotations:\n", broken)
	for _, key := range slices.Sorted(maps.Keys(node.Annotations)) {
		if strings.HasPrefix(key, "drydock.dev/") {
			fmt.Printf("  %s: %s\n", key, node.Annotations[key])
		}
	}
	if c := remediations.ReadyCondition(node); c != nil {
		fmt.Printf("Conditions:\n  Ready  %s  since %s  %s\n", c.Status, c.LastTransitionTime.Format("15:04:05"), c.Reason)
	}
	fmt.Println("Events:")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, e := range events.Items {
		from := e.ReportingController
		if from == "" {
			from = e.Source.Component
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", seen(e).Format("15:04:05"), e.Type, e.Reason, from, e.Message)
	}
	return table.Flush()
}

func seen(e corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	default:
		return metav1.NewTime(e.EventTime.Time)
	}
}
