package engine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
)

// All decisions depend on these sources. Each may stop delivering without an error. The store
// behind it may also go back to an older state, for example when etcd is restored from a backup.

const (
	// LookLongest bounds one query of Alertmanager. A replica that has not answered by then counts
	// as unreachable.
	LookLongest = 25 * time.Second
	// unseenFor is how long the cache may miss a write before it counts as behind.
	unseenFor = 30 * time.Second
)

// The names of the sources in drydock_source_last_answer_timestamp_seconds.
const (
	sourceAlertmanager = "alertmanager"
	sourceNodes        = "nodes"
	sourceLeases       = "leases"
	sourceLedger       = "ledger"
	sourceLoop         = "loop"
)

var sources = []string{sourceAlertmanager, sourceNodes, sourceLeases, sourceLedger, sourceLoop}

// LookWithin gives up a query that takes too long, even if the source ignores its context. last may
// be nil. If longest is zero, there is no time limit: a simulation answers immediately.
func LookWithin(ctx context.Context, c clock.Clock, source AlertSource, longest time.Duration, last *alerts.Snapshot) []alerts.Replica {
	if longest == 0 {
		return source.Look(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	answer := make(chan []alerts.Replica, 1)
	go func() { answer <- source.Look(ctx) }()
	timer := c.NewTimer(longest + time.Second) // longer than the context, so that a source that obeys its context can report which replica did not answer
	defer timer.Stop()
	select {
	case replicas := <-answer:
		return replicas
	case <-timer.C():
	}
	err := fmt.Errorf("no answer within %s", text.Duration(longest))
	if last == nil || len(last.Replicas) == 0 {
		return []alerts.Replica{{URL: "Alertmanager", Err: err}}
	}
	out := make([]alerts.Replica, 0, len(last.Replicas))
	for _, r := range last.Replicas {
		out = append(out, alerts.Replica{URL: r.URL, Err: err})
	}
	return out
}

// outside is what the engine remembers to compare with the next answers. All of it may be lost.
type outside struct {
	unshown unshown
	// endsMet has when this process first saw that an alert has ended that polls still bring, by
	// the Node's UID and the alert's fingerprint.
	endsMet map[[2]string]time.Time
	// shown are the versions that the cache showed last, by Node. ledgerKnown is the ledger's last
	// version.
	shown       map[string]version
	ledgerKnown string
	// stale is why this pass cannot trust the cache of Nodes, or empty.
	stale     string
	alertsOut outage
	writes    Writes
	// aside is zero while this installation is in charge of the cluster.
	aside     outage
	asideSaid string
	nodesNew  bool
	// back describes how etcd went back to an older state, for example by a restore. It is nil if
	// that did not happen, or was long ago.
	back         *ledger.WentBack
	unknownSlots map[string]bool
	fieldsSaid   string
	// hurries counts the passes in a row that wrote nothing and requested another pass soon.
	writesDone, hurries int
}

type unshown struct {
	// adopted are alerts from polls that the cache does not show yet, by the Node's name and UID,
	// and by the alert's fingerprint.
	adopted map[[2]string]adopted
	// stale is an alert that the API server has and the cache lacks. refused is one that the API
	// server lacks too: the write fails.
	stale, refused unshownOn
}

type adopted struct {
	alert remediations.Alert
	since time.Time
}

type unshownOn struct {
	node, alert string
	since       time.Time
}

// behind returns why the cache of Nodes cannot be trusted, or an empty string.
func (e *Engine) behind(now time.Time) string {
	on, since := e.unshown.stale.node, e.unshown.stale.since
	for name, m := range e.wrote {
		if m.written != nil && now.Sub(m.wroteAt) > unseenFor && (since.IsZero() || m.wroteAt.Before(since)) {
			on, since = name, m.wroteAt
		}
	}
	if since.IsZero() {
		return ""
	}
	return fmt.Sprintf("the watch of Nodes is behind: it does not show what was written on Node %s at %s", on, remediations.Instant(since).Format(time.RFC3339))
}

// readopt keeps the time at which a poll first queued the alert. Otherwise each poll would restart
// it.
func (u *unshown) readopt(n *corev1.Node, a remediations.Alert, now time.Time) (alert remediations.Alert, key [2]string, since time.Time) {
	key = [2]string{n.Name + "/" + string(n.UID), a.Fingerprint}
	if was, again := u.adopted[key]; again && was.alert.Policy == a.Policy {
		return a.SeenSince(was.alert), key, was.since
	}
	return a, key, now
}

// compare reads one Node from the API server, to see whether the cache is behind, or the alert
// cannot be written.
func (e *Engine) compare(ctx context.Context, now map[[2]string]adopted, nodes map[[2]string]*corev1.Node) {
	e.unshown.adopted = now
	was := e.unshown
	e.unshown.stale, e.unshown.refused = unshownOn{}, unshownOn{}
	for key, a := range now {
		n := nodes[key]
		if n == nil || e.Clock.Now().Sub(a.since) <= unseenFor {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, lastLook)
		live, err := e.Fleet.Node(ctx, n.Name)
		cancel()
		if err != nil || live.UID != n.UID {
			e.unshown.stale, e.unshown.refused = was.stale, was.refused
			return
		}
		at := unshownOn{n.Name, a.alert.Name, a.since}
		if _, there := live.Annotations[a.alert.Key()]; there {
			e.unshown.stale = at
			return
		}
		e.unshown.refused = at
		if was.refused.node != at.node {
			e.Log.Error(nil, "an alert cannot be written on its Node, so the node is not repaired", "node", at.node, "alert", at.alert, "why", e.writes.Refused[at.node].Why)
			e.Events.Event(n.Name, Event{Warning: true, Reason: "NodeUnwritable", Action: "Alert", Note: fmt.Sprintf("Drydock has not been able to write alert %s on Node %s since %s, so it cannot repair the node%s. Look for a webhook, a policy or a size limit that refuses the write.", at.alert, at.node, instant(at.since), because(e.writes.Refused[at.node].Why))})
		}
		return
	}
}

// unanswered returns a text if no Alertmanager has answered for some time: no alert can then be
// confirmed.
func (o *outage) unanswered(now time.Time) string {
	if !o.lasting(now) {
		return ""
	}
	return fmt.Sprintf("no Alertmanager has answered since %s: %v", remediations.Instant(o.since).Format(time.RFC3339), o.err)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

type version struct {
	uid string
	rv  string
}

// wentBack handles an API server that returned an older state, for example after a restore of etcd.
// It holds all disruptive steps for as long as a step may take, because the older state may lack
// the records of recent steps.
func (e *Engine) wentBack(what string, at time.Time) {
	now, until := e.Clock.Now(), at.Add(e.Config.LongestWait())
	if e.back != nil && !until.After(e.back.Until) || !until.After(now) {
		return
	}
	why := "the API server's store went back: " + what
	if e.back == nil || now.After(e.back.Until) {
		e.Log.Error(nil, "the API server's store went back to an older state; no disruptive step begins until the time in until", "why", what, "until", until)
		e.Events.Event("", Event{Warning: true, Reason: "StoreWentBack", Action: "Held", Note: why + fmt.Sprintf("; no disruptive step begins before %s, because what Drydock did after that older state may not be on record", until.UTC().Format(time.RFC3339))})
	}
	e.back = &ledger.WentBack{Why: why, Until: remediations.Instant(until)}
	for name, m := range e.wrote { // the store no longer has these writes, so do not wait for the cache to show them
		e.caught(name, m)
	}
	for _, m := range e.memory {
		m.standing = nil
	}
}

// olderVersion is false if the two cannot be compared.
func olderVersion(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

func (e *Engine) compareNodes(nodes []*corev1.Node, gone []string) {
	e.nodesNew = e.nodesNew || len(nodes)+len(gone) > 0
	for _, n := range nodes {
		was, known := e.shown[n.Name]
		e.shown[n.Name] = version{string(n.UID), n.ResourceVersion}
		if known && was.uid == string(n.UID) && olderVersion(n.ResourceVersion, was.rv) {
			e.wentBack(fmt.Sprintf("Node %s has resourceVersion %s, and had %s before", n.Name, n.ResourceVersion, was.rv), e.Clock.Now())
		}
	}
	for _, name := range gone {
		delete(e.shown, name)
	}
}

func (e *Engine) compareLedger(rv string) {
	if e.ledgerKnown != "" && olderVersion(rv, e.ledgerKnown) {
		e.wentBack(fmt.Sprintf("the ledger has resourceVersion %s, and had %s before", rv, e.ledgerKnown), e.Clock.Now())
	}
	e.ledgerKnown = rv
}

// shownOn prefers this process's own last write to the cache.
func (e *Engine) shownOn(node string) (*corev1.Node, remediations.Journal) {
	n := e.roster.Node(node)
	if n == nil {
		return nil, remediations.Journal{}
	}
	n = e.latest(n)
	return n, e.Config.Registry.ReadJournal(n)
}

// judgeLost finds out why Nodes no longer show attempts whose calls were made. If the stored ledger
// lacks them too, the API server has an older state, and disruptive steps are held. A restore may
// raise the resourceVersions, so that they do not reveal it. Each attempt is judged once.
func (e *Engine) judgeLost(attempts []string) {
	if e.ledger == nil {
		return // without a ledger, a later pass judges
	}
	for _, id := range attempts {
		was := e.attempts[id]
		_, j := e.shownOn(was.node)
		e.attempts.dismiss(func(of string, _ attempted) bool { return of == id })
		// If the ledger still knows the repair, another writer has removed the record from the
		// Node.
		if e.ledger.KnowsAttempt(was.repair, id) || j.UnderWay(was.repair) == nil && e.ledger.Knows(was.repair) {
			continue
		}
		e.wentBack(fmt.Sprintf("this process called attempt %s on Node %s at %s, and neither the Node nor the ledger names it", id, was.node, remediations.Instant(was.at).Format(time.RFC3339)), e.Clock.Now())
	}
}

func (e *Engine) goneBack(l *ledger.Ledger, now time.Time) {
	if e.back != nil && now.After(e.back.Until) {
		e.back = nil
	}
	if fleet, notes := e.Fleet.(Rewinding); notes {
		if what, at := fleet.WentBack(); !at.IsZero() {
			e.wentBack(what, at)
		}
	}
	longest := remediations.Instant(now.Add(e.Config.LongestWait()))
	switch b := l.Status.WentBack; {
	case e.back != nil:
		l.Status.WentBack = e.back
	case b != nil && now.After(b.Until):
		l.Status.WentBack = nil
	case b != nil && b.Until.After(longest): // an earlier leader's clock was ahead
		l.Status.WentBack = &ledger.WentBack{Why: b.Why, Until: longest}
	}
}
