package inspect

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

const maxPaused = 10

// PausedNode is a Node whose repairs a person holds: by a pause, by break-glass, or by the label
// exclude.
type PausedNode struct {
	Node string `json:"node"`
	Hold
	End string `json:"end"`
}

func marked(n *corev1.Node) bool {
	_, paused := n.Annotations[remediations.PauseKey]
	_, broken := n.Annotations[remediations.BreakGlassKey]
	return paused || broken || remediations.Excluded(n)
}

// CountPaused adds the Node to s.Paused if a person holds its repairs.
func (s *Status) CountPaused(n *corev1.Node, now time.Time) {
	if h := s.Ledger.Said(n, now); h != nil {
		s.Paused = append(s.Paused, PausedNode{n.Name, *h, endOf(n, h)})
	}
}

func (s *Status) paused(now time.Time) (out []Line) {
	more := 0
	for _, p := range s.Paused {
		if s.Ledger.Status != nil {
			if _, known := s.Ledger.Status.BreakGlass[p.Node]; known {
				continue
			}
		}
		if len(out) == maxPaused {
			more++
			continue
		}
		l := Line{Label: "Paused", Subject: p.Node, Text: p.Node + ": " + p.Message}
		l.same = l.Text
		if p.Until != nil {
			l.same += Stamp(*p.Until)
		}
		if until := YetToCome(p.Until, now); until != "" {
			l.Text += ", until " + until
		}
		if !strings.Contains(l.Text, p.End) {
			l.Text += "; `" + p.End + "` ends this"
		}
		out = append(out, l)
	}
	if more > 0 {
		out = append(out, Line{Label: "Paused", Text: fmt.Sprintf("and %s: to see them, `kubectl drydock status --all`, or on the page the filter state:paused", text.Count(more, "more node"))})
	}
	return out
}
