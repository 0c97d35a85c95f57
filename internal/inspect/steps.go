package inspect

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/coverage"
)

// Steps has the steps that could repair a node, each with its provider.
type Steps struct {
	Node  string            `json:"node"`
	Steps []coverage.Served `json:"steps"`
}

func (r *Reader) steps(ctx context.Context, nodes []*corev1.Node, beside string) (out []Steps, unseen string, err error) {
	cfg, unseen, err := r.configuration(ctx, "", r.Namespace, beside)
	if cfg == nil || err != nil {
		return nil, unseen, err
	}
	for _, n := range nodes {
		out = append(out, Steps{n.Name, coverage.On(cfg.Core, n, nil)})
	}
	return out, "", nil
}

// Lines returns the line with the provider of each step, then a line for each step that is not
// possible.
func (s Steps) Lines(subject string) []Line {
	if len(s.Steps) == 0 {
		return []Line{{Label: "Steps", Subject: s.Node, Text: subject + "no policy repairs this node"}}
	}
	var by []string
	var why []Line
	for _, step := range s.Steps {
		if step.Against != "" {
			by = append(by, step.Step+" not possible")
			why = append(why, Line{Label: "Steps", Subject: s.Node + " " + step.Step, Text: fmt.Sprintf("- %s: %s", step.Step, step.Against)})
			continue
		}
		by = append(by, step.Step+" by "+cmp.Or(step.Provider, "Drydock"))
	}
	return append([]Line{{Label: "Steps", Subject: s.Node, Text: subject + strings.Join(by, ", ")}}, why...)
}
