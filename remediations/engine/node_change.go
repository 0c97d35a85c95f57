package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/lifecycle"
)

// change returns nil if the decision writes nothing. key is the annotation with the target's
// record.
func change(s *lifecycle.State, key string, d lifecycle.Decision) *NodeChange {
	n, journal := s.Node, s.Journal
	c := NodeChange{Annotations: map[string]*string{}, Labels: map[string]*string{}}
	for _, k := range append(d.Prune, d.Consume...) {
		if _, ok := n.Annotations[k]; ok {
			c.Annotations[k] = nil
		}
	}
	for _, a := range d.Alerts {
		value := a.Encode()
		c.Annotations[a.Key()] = &value
	}
	switch {
	case d.Record != nil:
		value := d.Record.Encode()
		c.Annotations[key] = &value
	case d.Verb == lifecycle.VerbReset:
		for k := range n.Annotations {
			// A reset removes the records of exhausted repairs. An unreadable record is removed
			// too, because it may be one of these.
			other := journal.Records[k]
			if strings.HasPrefix(k, remediations.RepairPrefix) && (other == nil || other.Phase == remediations.PhaseExhausted) {
				c.Annotations[k] = nil
			}
		}
		c.Annotations[remediations.NodeRepairKey] = nil // even if the key is absent: with it, label sets the phase label again
	case d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop:
		if _, has := n.Annotations[key]; has {
			c.Annotations[key] = nil
		}
	}
	past := journal.Whole()
	if r := d.Record; r != nil && r.After != nil && (d.Verb == lifecycle.VerbIssue || d.Verb == lifecycle.VerbEnd) {
		past = remediations.MarkRelapsed(past, r.After.ID)
	}
	if d.Ended != nil {
		e := *d.Ended
		e.Machine = cmp.Or(e.Machine, remediations.MachineOf(s.Node))
		history := remediations.EncodeHistory(past, e)
		c.Annotations[remediations.HistoryKey] = &history
	} else if !slices.EqualFunc(past, journal.Whole(), func(a, b remediations.Entry) bool { return a.Outcome == b.Outcome }) {
		history := remediations.EncodeEntries(past)
		c.Annotations[remediations.HistoryKey] = &history
	}
	whole := journal.Whole()
	if d.History != nil {
		whole = journal.Rewritten(d.History)
		history := remediations.EncodeEntries(whole)
		c.Annotations[remediations.HistoryKey] = &history
	}
	if d.LeftOf != "" {
		if history, ok := remediations.HistoryLeaving(whole, d.LeftOf, d.Left); ok {
			c.Annotations[remediations.HistoryKey] = &history
		}
	}
	if d.Pause != "" {
		c.Annotations[remediations.PauseKey] = &d.Pause
	}
	for _, key := range d.Announce {
		value := announce.Value
		c.Annotations[key] = &value
	}
	if d.Cordon {
		yes := true
		c.Unschedulable = &yes
	}
	if d.Taint {
		c.OutOfService = &d.Record.Undo[len(d.Record.Undo)-1].At
	}
	if d.Untaint {
		c.InService = markedAt(journal, d)
	}
	label(s.Config.Registry, n, journal, key == remediations.NodeRepairKey, &c)
	if len(c.Annotations) == 0 && len(c.Labels) == 0 && c.Unschedulable == nil {
		return nil
	}
	return &c
}

// markedAt returns when Drydock set the out-of-service taint that the decision removes. An ended
// repair may have left the taint, so the history counts too.
func markedAt(journal remediations.Journal, d lifecycle.Decision) (at *time.Time) {
	var undo []remediations.Undo
	if journal.Record != nil {
		undo = append(undo, journal.Record.Undo...)
	}
	if d.Superseded != nil {
		undo = append(undo, d.Superseded.Undo...)
	}
	for _, e := range journal.History {
		if e.ID == d.LeftOf {
			undo = append(undo, e.Left...)
		}
	}
	for i, u := range undo {
		if u.Kind == remediations.UndoTaint {
			at = &undo[i].At
		}
	}
	return at
}

// tidies reports whether the write may wait: no call depends on it, and no person waits for it.
func tidies(s *lifecycle.State, d lifecycle.Decision) bool {
	r := s.Journal.Record
	verb := d.Verb == lifecycle.VerbHold || d.Verb == lifecycle.VerbDrop || d.Verb == lifecycle.VerbRest
	return verb && len(d.Consume) == 0 && len(d.Allow) == 0 && (r == nil || !r.Phase.InFlight())
}

// persist reports whether the write is durable. If not, the next pass decides again.
func (p *pass) persist(t *subject, d lifecycle.Decision) bool {
	c := change(t.State, t.Key, d)
	if c == nil {
		return false
	}
	own := t.of.kind == remediations.KindNode
	if own && tidies(t.State, d) {
		if p.tidying > tidyFor {
			p.again = true
			return false
		}
		began := p.Clock.Now()
		defer func() { p.tidying += p.Clock.Now().Sub(began) }()
	}
	if d.Uncordon {
		owned, err := p.Writer.OwnsCordon(p.ctx, t.of.node)
		if err != nil {
			p.failed = true
			return false
		}
		if owned {
			no := false
			c.Unschedulable = &no
		}
	}
	if len(d.Withdraw) > 0 {
		owned, err := p.Writer.OwnsAnnotations(p.ctx, t.of.node, d.Withdraw)
		if err != nil {
			p.failed = true
			return false
		}
		for _, key := range owned {
			c.Annotations[key] = nil
		}
	}
	written, err := p.write(p.ctx, t.Node, *c)
	if err != nil {
		p.failed = p.failed || (!errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound))
		return false
	}
	if own {
		p.show(written)
	}
	return true
}

// show runs after the record was written and before the call. If it fails, the repair continues,
// because an announcement must not stop a repair.
func (p *pass) show(n *corev1.Node) {
	if p.Conditions == nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, lastLook)
	defer cancel()
	shown, err := p.Conditions.Show(ctx, n)
	if err != nil {
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			p.Log.Error(err, "the conditions of a Node could not be updated to show its repair; Drydock tries again, and no repair waits for it", "node", n.Name)
		}
		return
	}
	p.remember(n.Name).written = shown
}
