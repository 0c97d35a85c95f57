package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/lifecycle"
)

// passing is one pass over the fleet.
type passing struct {
	*Engine
	ctx   context.Context
	now   time.Time
	fleet *fleet.Fleet
	tally *tally
	// holds are those that lie with the fleet, by reason.
	holds  map[remediations.Reason]string
	next   time.Time
	failed bool
	// tidying is the time that writes took which nobody waits for.
	tidying time.Duration
}

// node decides about one node, and carries the decision out.
func (p *passing) node(n *corev1.Node) {
	p.now = p.Clock.Now() // a pass over a storm takes a while, and an intent must be young when its call goes out
	if p.stands(n) {
		return
	}
	s := p.state(n)
	d := p.core.decide(s, p.now)
	surveyed := d.Ask.Survey && p.survey(s, d)
	if d.Ask.Lease || d.Ask.Heartbeats || surveyed {
		if d.Ask.Lease {
			p.readLease(n.Name)
		}
		if d.Ask.Heartbeats {
			p.readHeartbeats()
		}
		s = p.state(n)
		d = p.core.decide(s, p.now)
	}
	if p.Decided != nil {
		p.Decided(n.Name, d)
	}
	m := p.remember(n.Name)
	if d.Ask.Replacement {
		p.askProof(m, s.Journal.Record)
	}
	if signs := witnessOf(d); d.Ask.Witness && len(signs) > 0 {
		p.readWitness(m, n, signs)
	}
	m.keepWorking(s, d)
	m.found(d, p.now)
	if d.Ask.Alerts {
		p.askAlerts(m)
		p.want(s, s.Journal.Record, d)
	}
	p.waiting = p.waiting || d.Verb == lifecycle.VerbHold || m.work != nil
	p.recheck(d)
	before := m.written
	p.carry(s, d)
	p.answer(n.Name, d, m.written != nil && m.written != before)
	if m.writes.lasting(p.now) && d.Policy != nil {
		p.tally.holds[[2]string{d.Policy.Name, string(remediations.Blind)}]++
	}
	p.count(s.Journal.Record, d)
	p.stand(s, d)
}

// askAlerts asks the Alertmanagers on the node's account.
func (p *passing) askAlerts(m *memory) {
	if m.lookSince.IsZero() || p.word == nil || !p.word.AskedAt.Before(m.lookSince) {
		m.lookSince = p.now
	}
	p.look(p.ctx)
}

// answer tells people what became of what they wrote on the Node. A key that is taken off is answered with the write
// that takes it off, and each time anew: somebody may ask twice.
func (p *passing) answer(node string, d lifecycle.Decision, wrote bool) {
	for _, notice := range d.Notices {
		h := fnv.New32a()
		_, _ = h.Write([]byte(notice.Message))
		e := Event{Warning: true, Reason: string(notice.Reason), Action: fmt.Sprintf("Answer-%x", h.Sum32()), Note: notice.Message}
		switch {
		case len(d.Consume) == 0:
			p.tell(node, "", e)
		case wrote:
			p.Events.Event(node, e)
		}
	}
}

func (p *passing) carry(s *lifecycle.State, d lifecycle.Decision) {
	if d.Relapsed != nil {
		p.relapsed(s, d.Relapsed)
		return
	}
	switch d.Verb {
	case lifecycle.VerbIssue:
		p.issue(s, d)
	case lifecycle.VerbHold:
		p.keep(s, d)
	case lifecycle.VerbVerify:
		if p.put(s, d) != nil {
			p.remember(s.Node.Name).call = nil
			p.tell(s.Node.Name, d.Record.Intent.ID, Event{Reason: "RepairVerifying", Action: d.Record.Intent.ID, Note: d.Message, Of: trailOf(d.Record)})
			p.stop(d)
			p.replacing(d.Record)
		}
	case lifecycle.VerbResume:
		p.work(s.Node, d, s.Journal.Record)
	case lifecycle.VerbEnd:
		p.end(s, d)
	case lifecycle.VerbReset:
		p.reset(s, d)
	case lifecycle.VerbLook:
		if d.Policy != nil {
			// No guard holds it: it only looks once more. It keeps its place, so that a younger fault does not pass it.
			if wouldBe := d.Policy.Mode == remediations.ModeObserve; !wouldBe || !p.spoken(d.Policy, s.Journal.Record) {
				p.fleet.Occupy(p.Config, s.Node, wouldBe)
			}
		}
		p.put(s, d)
	case lifecycle.VerbWait:
		if p.put(s, d) != nil && d.Record != nil && d.Record.Note != "" {
			p.tell(s.Node.Name, d.Record.ID+d.Record.Note, Event{Warning: true, Of: trailOf(d.Record), Reason: "RepairBlocked", Action: d.Record.Intent.ID, Note: fmt.Sprintf("%s of repair %s: %s", d.Record.Step.Name, d.Record.ID, d.Message)})
		}
	case lifecycle.VerbDrop, lifecycle.VerbRest:
		if len(d.Allow) == 0 || p.allow(d) {
			if p.put(s, d) != nil && d.LeftOf != "" {
				p.Events.Event(s.Node.Name, Event{Reason: "RepairUndone", Action: d.LeftOf, Note: d.Message, Of: Trail{Repair: d.LeftOf}})
			}
		}
	}
}

// change is the one write that a decision asks for; nil: none. key is that of the target's record.
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
			// A sidecar that is under repair has not run out of anything, nor has a leader. Where a record cannot be read, none
			// can be told apart.
			other := journal.Records[k]
			if strings.HasPrefix(k, remediations.RepairPrefix) && (other == nil || other.Phase == remediations.Exhausted) {
				c.Annotations[k] = nil
			}
		}
		c.Annotations[remediations.NodeRepairKey] = nil // with it the label goes, whatever there is
	case d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop:
		if _, has := n.Annotations[key]; has {
			c.Annotations[key] = nil
		}
	}
	past := journal.History
	if r := d.Record; r != nil && r.After != nil && (d.Verb == lifecycle.VerbIssue || d.Verb == lifecycle.VerbEnd) {
		past = remediations.MarkRelapsed(past, r.After.ID)
	}
	if d.Ended != nil {
		history := remediations.EncodeHistory(past, *d.Ended)
		c.Annotations[remediations.HistoryKey] = &history
	} else if !slices.EqualFunc(past, journal.History, func(a, b remediations.Entry) bool { return a.Outcome == b.Outcome }) {
		history := remediations.EncodeEntries(past)
		c.Annotations[remediations.HistoryKey] = &history
	}
	if d.History != nil {
		history := remediations.EncodeEntries(d.History)
		c.Annotations[remediations.HistoryKey] = &history
	}
	if d.LeftOf != "" {
		if history, ok := remediations.HistoryLeaving(journal.History, d.LeftOf, d.Left); ok {
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
	if len(c.Annotations) == 0 && c.Unschedulable == nil {
		return nil
	}
	label(s.Config.Registry, n, &c)
	return &c
}

// markedAt is when Drydock set the taint that the decision takes back, by the record or by what an ended repair left.
func markedAt(journal remediations.Journal, d lifecycle.Decision) (at *time.Time) {
	var undo []remediations.Undo
	if journal.Record != nil {
		undo = append(undo, journal.Record.Undo...)
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

// tidies says that nobody waits for what the decision writes: no side effect rests on it, and it answers nobody.
func tidies(s *lifecycle.State, d lifecycle.Decision) bool {
	r := s.Journal.Record
	verb := d.Verb == lifecycle.VerbHold || d.Verb == lifecycle.VerbDrop || d.Verb == lifecycle.VerbRest
	return verb && len(d.Consume) == 0 && len(d.Allow) == 0 && (r == nil || !r.Phase.InFlight())
}

// mayTidy is how long the pass may write what nobody waits for. Alerts that are on no Node yet come before that.
func (p *passing) mayTidy() time.Duration {
	if p.unadopted {
		return tidyFor / 8
	}
	return tidyFor
}

// put writes what the decision asks to be written; nil: nothing was, and the next pass decides again.
func (p *passing) put(s *lifecycle.State, d lifecycle.Decision) *corev1.Node {
	c := change(s, remediations.NodeRepairKey, d)
	if c == nil {
		return nil
	}
	if tidies(s, d) {
		if p.tidying > p.mayTidy() {
			p.again = true
			return nil
		}
		began := p.Clock.Now()
		defer func() { p.tidying += p.Clock.Now().Sub(began) }()
	}
	if d.Uncordon {
		owned, err := p.Journal.OwnsCordon(p.ctx, s.Node.Name)
		if err != nil {
			p.failed = true
			return nil
		}
		if owned {
			no := false
			c.Unschedulable = &no
		}
	}
	if len(d.Withdraw) > 0 {
		owned, err := p.Journal.OwnsAnnotations(p.ctx, s.Node.Name, d.Withdraw)
		if err != nil {
			p.failed = true
			return nil
		}
		for _, key := range owned {
			c.Annotations[key] = nil
		}
	}
	written, err := p.write(p.ctx, s.Node, *c)
	if err != nil {
		p.failed = p.failed || (!errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound))
		return nil
	}
	return p.show(written)
}

// show has the Node's conditions follow its record, right after the record and before the call. It holds nothing: an announcement must
// not keep a repair from going on, nor from its end.
func (p *passing) show(n *corev1.Node) *corev1.Node {
	if p.Conditions == nil {
		return n
	}
	ctx, cancel := context.WithTimeout(p.ctx, lastLook)
	defer cancel()
	shown, err := p.Conditions.Show(ctx, n)
	if err != nil {
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			p.Log.Error(err, "the conditions of a Node do not say yet what Drydock does; this is tried again, and holds nothing", "node", n.Name)
		}
		return n
	}
	p.remember(n.Name).written = shown
	return shown
}

func (p *passing) keep(s *lifecycle.State, d lifecycle.Decision) {
	n := s.Node
	was := s.Journal.Record
	if d.Reason == remediations.Observing && !p.spoken(d.Policy, was) {
		p.fleet.Occupy(p.Config, n, true)
	}
	id := ""
	switch {
	case d.Record != nil:
		id = d.Record.ID
	case was != nil:
		id = was.ID
	}
	wrote := p.put(s, d) != nil
	if wrote && d.Record != nil {
		if was == nil {
			p.tell(n.Name, id, Event{Reason: "RepairPending", Of: trailOf(d.Record), Action: id, Note: fmt.Sprintf("repair %s by policy %s: %s", id, d.Record.Policy, p.causeOf(s, d.Record))})
		}
		if was != nil && was.Phase.InFlight() {
			if m := p.remember(n.Name); was.Phase == remediations.Acting && p.Config.Remediation(was.Step.Name).Once {
				m.call = nil // the attempt was given back, and is told again when it is made
				delete(m.told, was.Intent.ID+"|RepairStepIssued")
			}
			p.release(n.Name)
		}
	}
	if d.Fleetwide {
		p.holds[d.Reason] = d.Message
		return
	}
	if d.Record == nil || wrote {
		p.tell(n.Name, id+"/"+string(d.Reason), Event{Warning: true, Reason: "RepairHeld", Action: string(d.Reason) + "-" + id, Note: string(d.Reason) + ": " + d.Message, Of: trailOf(cmp.Or(d.Record, was))})
	}
}
