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

// standsFor is how long an earlier decision may be used again.
const standsFor = 5 * time.Minute

// standing is a decision that an open breaker holds the node, with its inputs. In a storm thousands
// of nodes are held this way. While the inputs stay the same, a new decision would differ only in
// the breaker's count of nodes. So the pass uses the old one again.
type standing struct {
	d          lifecycle.Decision
	node       *corev1.Node
	record     *remediations.Record
	alerts     []remediations.Alert
	said       []alerts.Verdict
	stop       fleet.Stop
	at, before time.Time
	// own is the ID of the silence that Drydock itself created for this repair.
	zone, own string
	// counts is true if a step depends on how many nodes have the same fault.
	counts bool
}

// sighted reports whether this pass trusts the alerts, the leases, the ledger and the cache. Only
// then may it use an earlier decision again.
func (p *pass) sighted() bool {
	return p.ledger != nil && p.ledger.Status.WentBack == nil && p.stale == "" && p.writes.Denied == "" && p.ledgerOut.since.IsZero() && p.leasesOut.since.IsZero() && p.heartbeats != nil && p.heartbeats.Blind() == "" &&
		p.word != nil && p.word.BlindCause(p.Config) == "" && !p.fleet.Unjudged
}

func (p *pass) stand(t *subject, d lifecycle.Decision) {
	s, m := t.State, p.remember(t.of.node)
	m.standing = nil
	if d.Verb != lifecycle.VerbHold || d.Reason != remediations.ReasonFleetUnhealthy || d.Ask != (lifecycle.Ask{}) || d.Well ||
		len(d.Notices) > 0 || len(d.Ends) > 0 || m.work != nil || m.call != nil || !m.writes.since.IsZero() || !p.sighted() || requested(s) ||
		change(s, t.Key, d) != nil || node.FromTheFuture(s, p.now) {
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
			return // not used again: the alert is gone, and must be removed from the Node once it has been gone long enough
		}
		was.said = append(was.said, said)
	}
	m.standing = was
}

// staleFrom returns when a condition that confirms the alert becomes too old, if nothing renews it.
// Zero means never.
func (p *pass) staleFrom(n *corev1.Node, a remediations.Alert) time.Time {
	policy := p.Config.PolicyOf(a.Policy, n)
	if policy == nil || policy.Witness == nil {
		return time.Time{}
	}
	return signs.StaleFrom(policy.Witness.Signs, n, p.now)
}

func (p *pass) counts(all []remediations.Alert) bool {
	return slices.ContainsFunc(all, func(a remediations.Alert) bool {
		policy := p.Config.Policy(a.Policy)
		return policy != nil && slices.ContainsFunc(policy.Plan, func(s remediations.Step) bool { return p.Config.Remediation(s.Name).ClusterWide })
	})
}

// held reports whether the same breaker still holds the node, and updates the count in the message.
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

// requested reports whether a person requested the repair. Any alert about the node can hold such a
// repair, so its decision is not used again.
func requested(s *lifecycle.State) bool {
	_, asks := s.Node.Annotations[remediations.RequestKey]
	r := s.Journal.Record
	return asks || (r != nil && r.Cause.Request != "")
}

// follows reports whether only the Node's heartbeats have changed since the decision.
func (s *standing) follows(n *corev1.Node) bool {
	if s.node != n && signs.Same(s.node, n) && signs.NotBefore(n, s.node) && maps.Equal(s.node.Annotations, n.Annotations) {
		s.node = n
	}
	return s.node == n
}

// stands reports whether this pass uses the node's last decision again, and then counts it as if it
// were made now.
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
		return false // another target on the Node has requested a newer answer of Alertmanager
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
	p.tallyNode(was.record, was.d)
	p.tally.show(m.shown)
	p.follow(target{node: n.Name}, was.record, nil, was.d)
	return true
}
