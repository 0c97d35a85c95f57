package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
)

// standsFor is the longest time for which a decision stands without being made again.
const standsFor = 5 * time.Minute

// standing is a decision that an open breaker holds the node, and what it rests on. As long as all of that is the same, it would be
// made again word for word, but for how many nodes the breaker counts. In a storm thousands of nodes are held so, and from one pass
// to the next nothing changes but that count.
type standing struct {
	d          lifecycle.Decision
	node       *corev1.Node
	record     *remediations.Record
	alerts     []remediations.Alert
	said       []alerts.Verdict
	stop       fleet.Stop
	at, before time.Time
	// zone is the node's, own the id of the silence that Drydock made for this repair.
	zone, own string
	// counts: a step that could be taken depends on how many nodes have the fault.
	counts bool
}

// sighted says that nothing fleet-wide but a breaker can hold a node in this pass.
func (p *pass) sighted() bool {
	return p.ledger != nil && p.ledger.Status.WentBack == nil && p.stale == "" && p.writes.Denied == "" && p.ledgerOut.since.IsZero() && p.leasesOut.since.IsZero() && p.heartbeats != nil && p.heartbeats.Blind() == "" &&
		p.word != nil && p.word.BlindCause(p.Config) == "" && !p.fleet.Unjudged
}

// stand remembers the decision where it is one that can stand.
func (p *pass) stand(s *lifecycle.State, d lifecycle.Decision) {
	m := p.remember(s.Node.Name)
	m.standing = nil
	if d.Verb != lifecycle.VerbHold || d.Reason != remediations.ReasonFleetUnhealthy || d.Ask != (lifecycle.Ask{}) || d.Well ||
		len(d.Notices) > 0 || m.work != nil || m.call != nil || !m.writes.since.IsZero() || !p.sighted() || requested(s) ||
		change(s, remediations.NodeRepairKey, d) != nil || node.FromTheFuture(s, p.now) {
		return
	}
	zone := p.Config.Zone(s.Node)
	stop, stopped := p.fleet.Stopped(zone, p.now)
	if !stopped {
		return
	}
	was := &standing{
		d: d, node: s.Node, record: s.Journal.Record, alerts: s.Journal.Alerts, stop: stop, at: p.now, before: p.now.Add(standsFor),
		zone: zone, own: s.OwnSilence(), counts: p.counts(s.Journal.Alerts),
	}
	if r := was.record; r != nil && r.Deadline.Before(was.before) {
		was.before = r.Deadline
	}
	if !d.Recheck.IsZero() && d.Recheck.Before(was.before) {
		was.before = d.Recheck
	}
	for _, a := range was.alerts {
		if stale := p.staleFrom(s.Node, a); !stale.IsZero() && stale.Before(was.before) {
			was.before = stale
		}
		said := p.word.VerdictFor(a.Fingerprint, p.Config, was.own)
		if said.Gone {
			return // it is taken off the Node when it has been gone for long enough
		}
		was.said = append(was.said, said)
	}
	m.standing = was
}

// staleFrom is when a condition that the alert's policy looks at is no data any more, if nothing confirms it; zero: never.
func (p *pass) staleFrom(n *corev1.Node, a remediations.Alert) time.Time {
	policy := p.Config.PolicyOf(a.Policy, n)
	if policy == nil || policy.Witness == nil {
		return time.Time{}
	}
	return signs.StaleFrom(policy.Witness.Signs, n, p.now)
}

// counts says that a policy of these alerts has a step that depends on how many nodes have the fault.
func (p *pass) counts(all []remediations.Alert) bool {
	return slices.ContainsFunc(all, func(a remediations.Alert) bool {
		policy := p.Config.Policy(a.Policy)
		return policy != nil && slices.ContainsFunc(policy.Plan, func(s remediations.Step) bool { return p.Config.Remediation(s.Name).ClusterWide })
	})
}

// held says that the breaker still holds the node, and brings the decision's words to what it counts by now.
func (s *standing) held(c *remediations.Config, by fleet.Stop) bool {
	was := s.stop
	if by == was {
		return true
	}
	if s.counts || by.Scope != was.Scope || !by.Calm.Equal(was.Calm) {
		return false
	}
	if s.stop = by; by.Calm.IsZero() {
		s.d.Message = lifecycle.StormGoesOn(c, by.Scope, by.Unhealthy, by.Nodes)
	}
	return true
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
	if !was.follows(n) || p.now.Before(was.at) || !p.now.Before(was.before) || Torn(was.at, p.now) ||
		m.work != nil || m.call != nil || !p.sighted() {
		return false
	}
	if m.lookSince.IsZero() || p.word.AskedAt.Before(m.lookSince) {
		return false // a target beside the node has had Alertmanager asked since
	}
	if stop, stopped := p.fleet.Stopped(was.zone, p.now); !stopped || !was.held(p.Config, stop) {
		return false
	}
	for i, a := range was.alerts {
		if p.word.VerdictFor(a.Fingerprint, p.Config, was.own) != was.said[i] {
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
	p.holdFleet(was.d)
	p.count(was.record, was.d)
	p.tally.show(m.shown)
	p.follow(target{node: n.Name}, was.record, nil, was.d)
	return true
}
