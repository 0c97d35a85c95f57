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

// All decisions depend on sources: Alertmanager, the cache of Nodes, the leases, the ledger. Each
// source may stop without an error, and the store behind it may go back to an older state.

const (
	// LookLongest bounds one query of Alertmanager. A replica that has not answered within it
	// counts as not answering.
	LookLongest = 25 * time.Second
	// unseenFor is how long the cache of Nodes may lack a write of this process.
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

// LookWithin queries the Alertmanagers and gives up a query that takes too long, even if the source
// ignores its context. last is the previous answer; nil: there is none. longest is zero if the
// source itself answers at once, as in a simulation.
func LookWithin(ctx context.Context, c clock.Clock, source AlertSource, longest time.Duration, last *alerts.Snapshot) []alerts.Replica {
	if longest == 0 {
		return source.Look(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	answer := make(chan []alerts.Replica, 1)
	go func() { answer <- source.Look(ctx) }()
	timer := c.NewTimer(longest + time.Second) // so that a source that honours its context can itself report which replica did not answer
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

// outside is the engine's memory of its sources, to compare with their next answers. All of it may
// be lost.
type outside struct {
	unshown unshown
	// endsMet are the ends of alerts on Nodes that the last poll contradicted, by UID and
	// fingerprint. The value is when this process first met the end.
	endsMet map[[2]string]time.Time
	// shown are the versions that the cache of Nodes gave last, ledgerKnown is the ledger's
	// version.
	shown       map[string]version
	ledgerKnown string
	// stale is why this pass cannot trust the cache of Nodes. Empty: it can.
	stale string
	// alertsOut is the time during which no Alertmanager answers.
	alertsOut outage
	// writes is how the API server accepts writes on Nodes.
	writes Writes
	// aside is the time during which this installation is not in charge of the cluster.
	aside outage
	// asideSaid is the reason for that, as written in the ledger.
	asideSaid string
	// nodesNew: the cache of Nodes gave something new since the last pass.
	nodesNew bool
	// back describes a store that went back. Nil: it did not.
	back *ledger.WentBack
	// unknownSlots are the slots of unknown kinds that were already reported to people.
	unknownSlots map[string]bool
	// fieldsSaid are the unknown fields of the ledger that were already reported.
	fieldsSaid string
	// writesDone counts the writes that succeeded. hurries counts the consecutive passes that
	// requested another pass at once and wrote nothing.
	writesDone, hurries int
}

// unshown is what the cache of Nodes does not show although it was written: by this process, or as
// an alert.
type unshown struct {
	// adopted are the alerts that a poll gave to the receiver and that their Nodes do not show yet,
	// by Node and fingerprint.
	adopted map[[2]string]adopted
	// stale is a Node that has an alert in the API server and not in the cache, and since when.
	// refused is a Node that lacks the alert in the API server, too.
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

// behind returns why the cache of Nodes cannot be trusted. Empty: it can.
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

// readopt gives an alert that was adopted before the time of its first arrival. A cache that does
// not show the alert must not restart that time.
func (u *unshown) readopt(n *corev1.Node, a remediations.Alert, now time.Time) (alert remediations.Alert, key [2]string, since time.Time) {
	key = [2]string{n.Name + "/" + string(n.UID), a.Fingerprint}
	if was, again := u.adopted[key]; again && was.alert.Policy == a.Policy {
		return a.SeenSince(was.alert), key, was.since
	}
	return a, key, now
}

// compare reads from the API server one Node that has not shown an alert for too long. Either the
// cache is behind, or the alert cannot be written on its Node.
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

// unanswered returns why no alert can be confirmed, if no Alertmanager has answered for some time.
// Empty: one answers.
func (o *outage) unanswered(now time.Time) string {
	if !o.lasting(now) {
		return ""
	}
	return fmt.Sprintf("no Alertmanager has answered since %s: %v", remediations.Instant(o.since).Format(time.RFC3339), o.err)
}

// because joins why to a sentence. It returns nothing if why is empty.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// version is the version of an object, as this process last knew it.
type version struct {
	uid string
	rv  string
}

// wentBack notes that the store returned an older state than this process knew. All disruptive
// steps are held for as long as a step may take, because actions since then may no longer be on
// record.
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
	for name, m := range e.wrote { // the store no longer has these writes
		e.caught(name, m)
	}
	for _, m := range e.memory {
		m.standing = nil
	}
}

// olderVersion reports whether a was written before b. Versions that cannot be compared are not
// older.
func olderVersion(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// compareNodes compares the Nodes that the cache gives with those that it gave before.
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

// compareLedger compares the version of a ledger that was read with the version that this process
// knew.
func (e *Engine) compareLedger(rv string) {
	if e.ledgerKnown != "" && olderVersion(rv, e.ledgerKnown) {
		e.wentBack(fmt.Sprintf("the ledger has resourceVersion %s, and had %s before", rv, e.ledgerKnown), e.Clock.Now())
	}
	e.ledgerKnown = rv
}

// shownOn returns the Node from the cache, and its journal.
func (e *Engine) shownOn(node string) (*corev1.Node, remediations.Journal) {
	n := e.roster.Node(node)
	if n == nil {
		return nil, remediations.Journal{}
	}
	n = e.latest(n)
	return n, e.Config.Registry.ReadJournal(n)
}

// judgeLost holds what disrupts if the stored ledger does not show an attempt that its Node lost.
// If only one of the two lost it, the other one still has it. That both lost it shows that the
// store went back, even if the restore raised all versions. Each attempt is judged once.
func (e *Engine) judgeLost(attempts []string) {
	if e.ledger == nil {
		return // the next pass judges
	}
	for _, id := range attempts {
		was := e.attempts[id]
		_, j := e.shownOn(was.node)
		e.attempts.settle(func(of string, _ attempted) bool { return of == id })
		// Without its record the ledger may still know the repair: another writer removed the key.
		if e.ledger.KnowsAttempt(was.repair, id) || j.UnderWay(was.repair) == nil && e.ledger.Knows(was.repair) {
			continue
		}
		e.wentBack(fmt.Sprintf("this process called attempt %s on Node %s at %s, and neither the Node nor the ledger names it", id, was.node, remediations.Instant(was.at).Format(time.RFC3339)), e.Clock.Now())
	}
}

// goneBack writes into the pass's ledger what this process knows of a store that went back.
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
