package engine

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// standsFor is the longest time for which a decision stands without being made again.
const standsFor = time.Minute

// standing is a decision that an open breaker holds the node, and what it rests on. As long as all of that is the same, it would be
// made again word for word. In a storm that stands, thousands of nodes are held so, and nothing changes from one pass to the next.
type standing struct {
	d          lifecycle.Decision
	node       *corev1.Node
	record     *remediations.Record
	alerts     []remediations.Alert
	said       []alerts.Verdict
	stop       fleet.Stop
	at, before time.Time
}

// sighted says that nothing fleet-wide but a breaker can hold a node in this pass.
func (p *pass) sighted() bool {
	return p.ledger != nil && p.ledgerOut.since.IsZero() && p.leasesOut.since.IsZero() && p.heartbeats != nil && p.heartbeats.Blind() == "" &&
		p.word != nil && p.word.BlindCause(p.Config) == "" && !p.fleet.Unjudged
}

// stand remembers the decision where it is one that can stand.
func (p *pass) stand(s *lifecycle.State, d lifecycle.Decision) {
	m := p.remember(s.Node.Name)
	m.standing = nil
	if d.Verb != lifecycle.VerbHold || d.Reason != remediations.ReasonFleetUnhealthy || d.Ask != (lifecycle.Ask{}) || d.Well ||
		len(d.Notices) > 0 || m.work != nil || m.call != nil || !m.writes.since.IsZero() || !p.sighted() || requested(s) ||
		change(s, remediations.NodeRepairKey, d) != nil {
		return
	}
	stop, stopped := p.fleet.Stopped(p.Config.Zone(s.Node), p.now)
	if !stopped {
		return
	}
	was := &standing{
		d: d, node: s.Node, record: s.Journal.Record, alerts: s.Journal.Alerts, stop: stop, at: p.now, before: p.now.Add(standsFor),
	}
	if r := was.record; r != nil && r.Deadline.Before(was.before) {
		was.before = r.Deadline
	}
	if !d.Recheck.IsZero() && d.Recheck.Before(was.before) {
		was.before = d.Recheck
	}
	for _, a := range was.alerts {
		said := p.word.VerdictFor(a.Fingerprint, p.Config, s.OwnSilence())
		if said.Gone {
			return // it is taken off the Node when it has been gone for long enough
		}
		was.said = append(was.said, said)
	}
	m.standing = was
}

// requested says that the repair is one that a person asked for: it is held by what is said of any alert about the node.
func requested(s *lifecycle.State) bool {
	_, asks := s.Node.Annotations[remediations.RequestKey]
	r := s.Journal.Record
	return asks || (r != nil && r.Cause.Request != "")
}

// follows says that the Node is the one that was decided about, but for heartbeats, and goes on with the newer one.
func (s *standing) follows(n *corev1.Node) bool {
	if s.node != n && signs.Same(s.node, n) && maps.Equal(s.node.Annotations, n.Annotations) {
		s.node = n
	}
	return s.node == n
}

// stands says that the node's last decision stands, and counts it as if it had been made again.
func (p *pass) stands(n *corev1.Node) bool {
	m := p.memory[n.Name]
	if m == nil || m.standing == nil {
		return false
	}
	was := m.standing
	if !was.follows(n) || p.now.Before(was.at) || !p.now.Before(was.before) || torn(was.at, p.now) ||
		m.work != nil || m.call != nil || !p.sighted() {
		return false
	}
	if m.lookSince.IsZero() || p.word.AskedAt.Before(m.lookSince) {
		return false // a target beside the node has had Alertmanager asked since
	}
	if stop, stopped := p.fleet.Stopped(p.Config.Zone(n), p.now); !stopped || stop != was.stop {
		return false
	}
	own := (&lifecycle.State{Journal: remediations.Journal{Record: was.record}}).OwnSilence()
	for i, a := range was.alerts {
		if p.word.VerdictFor(a.Fingerprint, p.Config, own) != was.said[i] {
			return false
		}
	}
	if p.core.stood != nil {
		p.core.stood(p.state(n), was.d, p.now)
	}
	if p.Decided != nil {
		p.Decided(n.Name, was.d)
	}
	p.waiting = true
	p.recheck(was.d)
	p.holds[was.d.Reason] = was.d.Message
	p.count(was.record, was.d)
	return true
}
