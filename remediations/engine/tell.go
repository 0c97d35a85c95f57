package engine

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

func (p *pass) readLease(node string) {
	renewed, duration, err := p.Fleet.Lease(p.ctx, node)
	if err == nil || errors.Is(err, ErrNotFound) {
		p.leaseOut.over()
	} else {
		p.leaseOut.failed(p.Clock.Now(), err, outageLongest)
	}
	if err != nil {
		p.Log.Error(err, "a node's lease cannot be read; no cure is proven without it", "node", node)
		renewed, duration = time.Time{}, 0
	}
	lease := signs.Lease{ReadAt: p.Clock.Now(), RenewedAt: renewed, Duration: duration}
	switch {
	case err == nil:
		lease = p.leases.follow(node, lease)
	case !errors.Is(err, ErrNotFound):
		lease.Unread = err.Error()
	}
	p.remember(node).lease = &lease
}

// readHeartbeats counts the leases at most once for each decision. If the last list failed, it does
// not wait for the next one: a list that hangs must not delay the decisions about all nodes.
func (p *pass) readHeartbeats() {
	defer p.judgeInSight()
	failing := !p.leasesOut.since.IsZero()
	if p.listing != nil && !failing {
		l := <-p.listing
		p.listing = nil
		p.countLeases(l)
	}
	if p.heartbeats != nil && !p.heartbeats.ReadAt.Before(p.now) {
		return
	}
	if p.listing == nil && p.leasesOut.due(p.Clock.Now()) {
		if failing {
			p.prefetchLeases(p.ctx)
		} else {
			sample, fleet := p.sample()
			p.countLeases(p.list(p.ctx, sample, fleet))
		}
	}
	if p.listing == nil {
		p.retry(p.leasesOut)
	}
}

// judgeInSight judges the breakers again once the leases are read. Otherwise a storm that began
// while Drydock could not judge the fleet would stop no repair in the rest of the pass.
func (p *pass) judgeInSight() {
	if p.fleet != nil && p.fleet.Unjudged && !p.blind() {
		p.fleet.Judge(p.ledger, false, p.now)
	}
}

// emitOnce sends an Event once for each key and reason. If the key is empty, the note is the key.
func (p *pass) emitOnce(node, key string, e Event) {
	m := p.remember(node)
	k := key + "|" + e.Reason
	if key == "" {
		k = e.Note
	}
	if m.emitted.First(k, 256) {
		p.Events.Event(node, e)
	}
}

func (p *pass) holdFleet(d lifecycle.Decision) {
	if _, noted := p.holds[d.Reason]; noted {
		return
	}
	p.holds[d.Reason] = d.Message
	if d.Concern != (remediations.Concern{}) {
		p.concerns[d.Reason] = d.Concern
	}
}

// holdAgain is how long a fleet-wide hold must be absent before its return is reported as new. A
// pass that only waits for observations has no holds, so a short absence means nothing. Kubernetes
// also combines equal Events within six minutes.
const holdAgain = 6 * time.Minute

// toldHold is a hold that an Event has reported, and when it last held a repair.
type toldHold struct {
	message string
	held    time.Time
}

func (p *pass) publish() {
	now := p.Clock.Now()
	if p.leaseOut.idle(now) {
		p.leaseOut.over()
	}
	blind, unread := cmp.Or(p.word.BlindCause(p.Config), p.alertsOut.unanswered(now)), p.unreadLeases(now)
	lost, unwritten := p.ledger == nil && p.ledgerOut.lasting(now), p.unwritten(now)
	p.metrics.set(p.Config, p.tally, p.fleet, map[string]bool{
		blindAlertmanager: blind != "", blindLeases: p.heartbeats.Blind() != "" || unread != "", blindLedger: lost,
		blindNodes: p.stale != "", blindWrites: len(unwritten) > 0, blindDenied: p.writes.Denied != "", blindStore: p.back != nil || (p.ledger != nil && p.ledger.Status.WentBack != nil),
	})
	if lost {
		p.holds[remediations.ReasonBlind] = lifecycle.LedgerLost(p.ledgerOut.since, p.ledgerErr)
	}
	blind = cmp.Or(blind, p.heartbeats.Blind(), unread, p.stale)
	if _, told := p.holds[remediations.ReasonAlertUnconfirmed]; !told && p.unrouted.says != "" {
		p.holds[remediations.ReasonAlertUnconfirmed] = p.unrouted.says
	}
	p.holdStrays()
	maps.DeleteFunc(p.fleetHolds, func(_ remediations.Reason, told toldHold) bool { return now.Sub(told.held) > holdAgain })
	for reason, message := range p.holds {
		told, is := p.fleetHolds[reason]
		p.fleetHolds[reason] = toldHold{message, now}
		if !is || (told.message != message && saysWhich(reason)) {
			p.Events.Event("", Event{Warning: HeldIsWarning(reason), Reason: "RepairHeld", Action: string(reason), Note: string(reason) + ": " + message})
		}
	}
	selfTest := p.selfTest()
	if p.ledger == nil {
		return
	}
	p.tellBreakers()
	status := ledger.Status{
		Mode: p.Config.Mode, Limits: p.Config.Limits.Words(), Breakers: maps.Clone(p.fleet.Breakers), Blind: blind,
		Exhausted: p.ledger.Status.Exhausted, Ends: p.ledger.Status.Ends, Holds: p.holds, Concerns: p.concerns, BreakGlass: p.ledger.Status.BreakGlass,
		WentBack: p.ledger.Status.WentBack, Stopped: p.ledger.Status.Stopped, SelfTest: selfTest, Sidecars: p.tally.sidecars, Uncovered: p.uncovered(), Contested: p.contested(),
		Admission: p.admission(), Denied: p.writes.Denied, Limited: p.writes.Limited, Unwritten: unwritten, Unknown: p.ledger.Status.Unknown, UnknownMore: p.ledger.Status.UnknownMore,
	}
	p.ledger.Status = status // the next save of the ledger contains it, even if this pass saves nothing
	if !p.ledger.Saw(p.noteBlind(), p.now) && sameStatus(status, p.statusSaved) {
		if p.ledgerOut.idle(now) {
			p.ledgerOut.over() // nothing has needed a save for some time, so the failure of the last one no longer counts
		}
		return
	}
	_ = p.save(p.ledger.Clone())
}

// unreadLeases returns an empty string while the failure is short.
func (p *pass) unreadLeases(now time.Time) string {
	switch {
	case p.leaseOut.lasting(now):
		return lifecycle.LeaseLost(p.leaseOut.since, p.leaseOut.err)
	case p.leasesOut.lasting(now):
		return lifecycle.LeasesLost(p.leasesOut.since, p.leasesOut.err)
	}
	return ""
}

// sameStatus reports whether the differences are not worth a save of the ledger. A breaker that
// opens is worth one. A changed count is not.
func sameStatus(a, b ledger.Status) bool {
	if !a.Admission.Same(b.Admission) || !maps.Equal(a.Sidecars, b.Sidecars) || !maps.Equal(a.Concerns, b.Concerns) || (a.WentBack == nil) != (b.WentBack == nil) || a.SelfTest.State != b.SelfTest.State || a.SelfTest.Message != b.SelfTest.Message || a.Mode != b.Mode || !maps.Equal(a.Limits, b.Limits) || (a.Blind == "") != (b.Blind == "") || len(a.Breakers) != len(b.Breakers) || len(a.Holds) != len(b.Holds) || !maps.Equal(a.Uncovered, b.Uncovered) || !slices.Equal(a.Contested, b.Contested) || (a.Aside == "") != (b.Aside == "") || (a.Denied == "") != (b.Denied == "") || len(a.Limited) != len(b.Limited) || !sameKeys(a.Unwritten, b.Unwritten) {
		return false
	}
	for scope, x := range a.Breakers {
		y, ok := b.Breakers[scope]
		if !ok || x.State != y.State || x.Trial != y.Trial || x.Frozen != y.Frozen {
			return false
		}
		// While a breaker is frozen, Quiet and Seen advance in each pass. That is not worth a save.
		if !x.Frozen && (x.Quiet.Sub(y.Quiet).Abs() > time.Minute || x.Seen.Sub(y.Seen).Abs() >= time.Minute) {
			return false
		}
	}
	for r, says := range a.Holds {
		if said, ok := b.Holds[r]; !ok || (said != says && (saysWhich(r) || r == remediations.ReasonAtLimit)) {
			return false
		}
	}
	return true
}

func (p *pass) admission() *ledger.Admission {
	if p.Admission == nil {
		return nil
	}
	return p.Admission()
}

func sameKeys(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return true
}

// saysWhich is true if a changed message must be reported again. Only CommonCause names one node.
// Other messages contain counts, which change all the time.
func saysWhich(r remediations.Reason) bool { return r == remediations.ReasonCommonCause }

func (p *pass) causeOf(s *lifecycle.State, r *remediations.Record) string {
	if a := alertOf(s, r); a != nil {
		return "alert " + a.Name + " firing since " + a.StartsAt.Format(time.RFC3339)
	}
	return r.Cause.String()
}

// alertOf returns nil if a person requested the repair, or if the alert is no longer on the Node.
func alertOf(s *lifecycle.State, r *remediations.Record) *remediations.Alert {
	for _, a := range s.Journal.Alerts {
		if a.Fingerprint == r.Cause.Alert {
			return &a
		}
	}
	return nil
}
