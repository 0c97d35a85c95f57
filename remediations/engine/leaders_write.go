package engine

import (
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// putLeader writes what the decision asks to be written, and says whether it was.
func (p *passing) putLeader(s *remediations.LeaderState, d remediations.Decision) bool {
	c := leaderChange(s, d)
	if c == nil {
		return false
	}
	_, err := p.write(p.ctx, s.Node, *c)
	if err != nil {
		p.failed = p.failed || (!errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound))
	}
	return err == nil
}

// leaderChange is the one write that a decision about a leader asks for; nil: none.
func leaderChange(s *remediations.LeaderState, d remediations.Decision) *NodeChange {
	c := NodeChange{Annotations: map[string]*string{}}
	for _, k := range append(d.Prune, d.Consume...) {
		if _, ok := s.Node.Annotations[k]; ok {
			c.Annotations[k] = nil
		}
	}
	_, has := s.Node.Annotations[remediations.LeaderKey]
	switch {
	case d.Record != nil:
		value := d.Record.Encode()
		c.Annotations[remediations.LeaderKey] = &value
	case has && (d.Verb == remediations.End || d.Verb == remediations.Drop):
		c.Annotations[remediations.LeaderKey] = nil
	}
	if d.Ended != nil {
		history := remediations.EncodeHistory(s.Journal.History, *d.Ended)
		c.Annotations[remediations.HistoryKey] = &history
	}
	if len(c.Annotations) == 0 {
		return nil
	}
	label(s.Node, &c)
	return &c
}

// label has the change of a Node say the phase that its records say after it, where it changes one of those.
func label(n *corev1.Node, c *NodeChange) {
	_, node := c.Annotations[remediations.NodeRepairKey]
	_, leader := c.Annotations[remediations.LeaderKey]
	if !node && !leader {
		return
	}
	after := maps.Clone(n.Annotations)
	if after == nil {
		after = map[string]string{}
	}
	for k, v := range c.Annotations {
		if delete(after, k); v != nil {
			after[k] = *v
		}
	}
	if c.Labels == nil {
		c.Labels = map[string]*string{}
	}
	c.Labels[remediations.PhaseLabel] = nil
	if phase := string(remediations.LabelFor(after)); phase != "" {
		c.Labels[remediations.PhaseLabel] = &phase
	}
}
