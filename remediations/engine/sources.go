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

// Everything that Drydock decides rests on sources: Alertmanager, the cache of Nodes, the leases, the ledger. Each of them may
// stop without an error, and the store behind them may go back to an older state.

const (
	// LookLongest bounds one look at Alertmanager. What has not answered by then counts as no answer.
	LookLongest = 25 * time.Second
	// unseenFor is how long the cache of Nodes may lack what this process wrote.
	unseenFor = 30 * time.Second
)

// The sources, as drydock_source_last_answer_timestamp_seconds names them.
const (
	sourceAlertmanager = "alertmanager"
	sourceNodes        = "nodes"
	sourceLeases       = "leases"
	sourceLedger       = "ledger"
	sourceLoop         = "loop"
)

// sources are all of them.
var sources = []string{sourceAlertmanager, sourceNodes, sourceLeases, sourceLedger, sourceLoop}

// LookWithin asks the Alertmanagers, and gives up a look that takes too long, even where the source ignores its context. last is the
// answer before, nil: none. longest is zero where the source itself answers at once, as in a simulation.
func LookWithin(ctx context.Context, c clock.Clock, source AlertSource, longest time.Duration, last *alerts.Snapshot) []alerts.Replica {
	if longest == 0 {
		return source.Look(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	answer := make(chan []alerts.Replica, 1)
	go func() { answer <- source.Look(ctx) }()
	timer := c.NewTimer(longest + time.Second) // so that a source that honours its context says itself who did not answer
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

// outside is what the engine remembers of its sources, to hold against what they give next. All of it may be lost.
type outside struct {
	unshown unshown
	// endsMet are the ends of alerts on Nodes that the last poll contradicted, by UID and fingerprint, and since when they are known.
	endsMet map[[2]string]time.Time
	// shown are the versions that the cache of Nodes gave last, ledgerKnown is that of the ledger.
	shown       map[string]version
	ledgerKnown string
	// stale is why the cache of Nodes cannot be trusted in this pass; empty: it can.
	stale string
	// writes is what is known of how the API server takes writes on Nodes.
	writes Writes
	// aside is while this installation is not in charge of the cluster.
	aside outage
	// asideSaid is what the ledger says of that.
	asideSaid string
	// nodesNew: the cache of Nodes gave something since the last pass.
	nodesNew bool
	// back is what is known of a store that went back; nil: it did not.
	back *ledger.WentBack
	// unknownSlots are those that people were told of.
	unknownSlots map[string]bool
	// fieldsSaid are the unknown fields of the ledger that people were told of.
	fieldsSaid string
	// writesDone counts the writes that succeeded, hurries the passes in a row that asked for another one at once and wrote nothing.
	writesDone, hurries int
}

// unshown is what the cache of Nodes does not show although it was written: by this process, or as an alert.
type unshown struct {
	// adopted are the alerts that a poll gave to the receiver and that their Nodes do not show, by Node and fingerprint.
	adopted map[[2]string]adopted
	// stale is the Node that the API server gives with an alert and the cache without it, since when; refused is one that the API
	// server gives without it, too.
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

// behind says why the cache of Nodes cannot be trusted; empty: it can.
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

// readopt gives the alert that was adopted before its first arrival: a cache that does not show it must not begin its time again.
func (u *unshown) readopt(n *corev1.Node, a remediations.Alert, now time.Time) (alert remediations.Alert, key [2]string, since time.Time) {
	key = [2]string{n.Name + "/" + string(n.UID), a.Fingerprint}
	if was, again := u.adopted[key]; again && was.alert.Policy == a.Policy {
		return a.SeenSince(was.alert), key, was.since
	}
	return a, key, now
}

// compare asks the API server for one Node that does not show an alert for too long: either the cache is behind, or the alert
// cannot be put on its Node.
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
			e.Events.Event(n.Name, Event{Warning: true, Reason: "NodeUnwritable", Action: "Alert", Note: fmt.Sprintf("Drydock cannot write alert %s on Node %s since %s, so it cannot repair the node%s. Look for a webhook, a policy or a size limit that refuses the write.", at.alert, at.node, instant(at.since), because(e.writes.Refused[at.node].Why))})
		}
		return
	}
}

// because joins why to a sentence; nothing where it is not known.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// version is that of an object as this process last knew it.
type version struct {
	uid string
	rv  string
}

// wentBack notes that the store gave an older state than this process knew. Everything that disrupts is held for as long as a step
// may take: what was done since then may not be on record any more.
func (e *Engine) wentBack(what string, at time.Time) {
	now, until := e.Clock.Now(), at.Add(e.Config.LongestWait())
	if e.back != nil && !until.After(e.back.Until) || !until.After(now) {
		return
	}
	why := "the API server's store went back: " + what
	if e.back == nil || now.After(e.back.Until) {
		e.Log.Error(nil, "the API server's store went back to an older state; everything that disrupts is held", "why", what, "until", until)
		e.Events.Event("", Event{Warning: true, Reason: "StoreWentBack", Action: "Held", Note: why + fmt.Sprintf("; nothing that disrupts begins before %s, because what was done since then may not be on record", until.UTC().Format(time.RFC3339))})
	}
	e.back = &ledger.WentBack{Why: why, Until: remediations.Instant(until)}
	for name, m := range e.wrote { // the store does not have these writes any more
		e.caught(name, m)
	}
	for _, m := range e.memory {
		m.standing = nil
	}
}

// olderVersion says that a was written before b. What cannot be compared is not older.
func olderVersion(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// compareNodes holds what the cache gives against what it gave before.
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

// compareLedger holds a ledger that was read against the one that this process knew.
func (e *Engine) compareLedger(rv string) {
	if e.ledgerKnown != "" && olderVersion(rv, e.ledgerKnown) {
		e.wentBack(fmt.Sprintf("the ledger has resourceVersion %s, and had %s before", rv, e.ledgerKnown), e.Clock.Now())
	}
	e.ledgerKnown = rv
}

// shownOn is the Node as the cache has it, and what it says.
func (e *Engine) shownOn(node string) (*corev1.Node, remediations.Journal) {
	n := e.roster.Node(node)
	if n == nil {
		return nil, remediations.Journal{}
	}
	return n, e.Config.Registry.ReadJournal(n)
}

// goneBack puts into the ledger that is decided by what this process knows of a store that went back.
func (e *Engine) goneBack(l *ledger.Ledger, now time.Time) {
	if e.back != nil && now.After(e.back.Until) {
		e.back = nil
	}
	if fleet, notes := e.Fleet.(Rewinding); notes {
		if what, at := fleet.WentBack(); !at.IsZero() {
			e.wentBack(what, at)
		}
	}
	if e.ledger != nil {
		if what := e.attempts.missing(e.ledger, now.Add(-e.Config.LongestWait()), e.shownOn); what != "" {
			e.wentBack(what, now)
		}
	}
	longest := remediations.Instant(now.Add(e.Config.LongestWait()))
	switch b := l.Status.WentBack; {
	case e.back != nil:
		l.Status.WentBack = e.back
	case b != nil && now.After(b.Until):
		l.Status.WentBack = nil
	case b != nil && b.Until.After(longest): // one that led before had a clock that was ahead
		l.Status.WentBack = &ledger.WentBack{Why: b.Why, Until: longest}
	}
}
