package kube

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations/engine"
)

// Work implements engine.Worker: it evicts the pods of a node, with kubectl's own code.
func (d Drainer) Work(ctx context.Context, m engine.Machine, mayStill func() error, report func(note, blocked string)) error {
	if err := mayStill(); err != nil {
		return err
	}
	_, err := d.Drain(ctx, m.Node, DrainOptions{
		UID: types.UID(m.UID), WithoutController: m.WithoutController,
		Progress: func(r DrainReport) { report(r.String(), blockedBy(r)) },
	})
	return err
}

// The numbers that change whenever a pod goes are left out, so that the text changes only when the
// obstacle does.
func blockedBy(r DrainReport) string {
	var out []string
	for _, h := range r.Held {
		out = append(out, h.Pod+" "+h.Why)
	}
	if r.More > 0 {
		out = append(out, fmt.Sprintf("and %d more", r.More))
	}
	return strings.Join(out, "; ")
}
