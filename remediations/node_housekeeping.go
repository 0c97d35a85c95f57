package remediations

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// dropMalformed forgets a record that nobody can read. What it said is kept, cut, in the history.
func (s *State) dropMalformed(now time.Time) Decision {
	var bytes string
	for _, k := range slices.Sorted(maps.Keys(s.Node.Annotations)) {
		v := s.Node.Annotations[k]
		if _, err := DecodeRecord(v); strings.HasPrefix(k, RepairPrefix) && err != nil {
			bytes = v
		}
	}
	return Decision{
		Verb: Reset, Message: "a record that could not be read was dropped: " + clip(bytes, 900),
		Ended: &Entry{ID: "unreadable", Outcome: Cancelled, Steps: []string{}, Began: Instant(now), Ended: Instant(now), Why: clip(bytes, 1024)},
	}
}

// Over says that an alert that has led to nothing needs no more thought: nobody has it, and it was said to be
// resolved, or nobody has heard of it for a while.
func (s *State) Over(a *Alert, now time.Time) bool {
	return s.Word.About(a.Fingerprint, s.Config, s.ownSilence()).Gone && s.Word.BlindCause(s.Config) == "" &&
		(a.Status == StatusResolved || now.Sub(a.ReceivedAt).Abs() > UnconfirmedFor) // or received by a clock that was wrong
}

// prune drops the alerts that are over and that no repair refers to any more.
func (s *State) prune(d *Decision, now time.Time) {
	for k := range s.Node.Annotations {
		// Drydock's own key, and nothing that it wrote, or the journal had it: the poll brings a real alert again.
		if fingerprint, ours := strings.CutPrefix(k, AlertPrefix); ours && s.AlertBy(fingerprint) == nil {
			d.Prune = append(d.Prune, k)
		}
	}
	slices.Sort(d.Prune)
	if s.Stale() || d.Verb == Look {
		return
	}
	kept := s.Journal.Record
	switch {
	case d.Record != nil:
		kept = d.Record
	case d.Verb == End || d.Verb == Drop || d.Verb == Reset:
		kept = nil
	}
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if p := s.Config.Policy(a.Policy); p != nil && p.Kind != KindNode {
			continue // the sidecar's own decision drops it, or the leader's
		}
		if (kept == nil || kept.Phase == Exhausted || kept.Cause.Alert != a.Fingerprint) && (s.Over(a, now) || d.cured(a)) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
}

// cured says that the alert is that of a repair which ends because it was gone for as long as a proof takes: nobody need
// have written on the Node that it is resolved.
func (d *Decision) cured(a *Alert) bool {
	return d.Verb == End && d.Ended.Cause == a.Fingerprint && (d.Ended.Outcome == Recovered || d.Ended.Outcome == SelfRecovered)
}

// Ends says that the end of that alert is what a repair in flight on the Node waits for, and finds out by itself: nothing
// is decided by its being written there.
func Ends(n *corev1.Node, fingerprint string) bool {
	if !Phase(n.Labels[PhaseLabel]).InFlight() {
		return false
	}
	r, err := DecodeRecord(n.Annotations[NodeRepairKey])
	return err == nil && r.Phase.InFlight() && r.Cause.Alert == fingerprint
}

// consume takes people's keys whose time is over or whose effect this decision is, and names those that nobody can read.
func (s *State) consume(d *Decision, now time.Time) {
	if v, ok := s.Node.Annotations[PauseKey]; ok {
		p, err := ParsePause(v)
		switch {
		case err != nil:
			d.notice(AnnotationInvalid, "%v", err)
		case !p.Until.IsZero() && !now.Before(p.Until) && s.clockTrusted(d, now):
			d.Consume = append(d.Consume, PauseKey)
		}
	}
	s.consumeRequest(d)
	s.approval(d)
	s.cancellation(d)
	s.glass(d, now)
	v, resets := s.Node.Annotations[ResetKey]
	switch {
	case resets && s.Ledger == nil && ParseReset(v) == nil:
		if _, f := s.withoutLedger(now); f != nil {
			d.notice(AnnotationInvalid, "%s waits until Drydock can read and save its ledger", ResetKey)
		}
	case resets:
		d.Consume = append(d.Consume, ResetKey)
		if err := ParseReset(v); err != nil {
			d.notice(AnnotationInvalid, "%v", err)
		} else if d.Verb != Reset && len(d.Allow) == 0 && len(d.Prune) == 0 {
			d.notice(AnnotationInvalid, "%s: there is no exhausted or malformed repair on this node to forget", ResetKey)
		}
	}
}

// approval takes drydock.dev/approve: kept while the repair that it names waits, consumed by its first step, refused
// where nothing waits for it.
func (s *State) approval(d *Decision) {
	v, ok := s.Node.Annotations[ApproveKey]
	if !ok {
		return
	}
	r := s.Journal.Record
	for _, other := range s.Journal.Records {
		if other.ID == v && other.Phase == Pending && other.Intent == nil {
			return // for the decision about that target to take
		}
	}
	if r != nil && r.ID == v && r.Phase == Pending && r.Intent == nil && d.Verb != Issue && d.Verb != Drop && d.Verb != End {
		return
	}
	d.Consume = append(d.Consume, ApproveKey)
	if d.Verb != Issue || d.Record.ID != v {
		d.notice(AnnotationInvalid, "%s=%q: no repair of that id waits for approval on this node", ApproveKey, clip(v, 40))
	}
}

// cancellation takes drydock.dev/cancel: with the end of the repair that it names, or with the answer that there is none.
// Somebody who wrote something else than an id wanted something to stop, so the node is paused instead.
func (s *State) cancellation(d *Decision) {
	v, ok := s.Node.Annotations[CancelKey]
	if !ok {
		return
	}
	r := s.Journal.Record
	if r != nil && r.ID == v && r.Phase == Acting {
		return // the call under way is not torn
	}
	for _, other := range s.Journal.Records {
		if other.ID == v && other.Phase != Exhausted {
			return // for the decision about that target to take
		}
	}
	leader := s.Journal.location()
	d.Consume = append(d.Consume, CancelKey)
	if r == nil || (leader != nil && leader.ID == v) {
		r = leader
	}
	switch {
	case d.Verb == End && d.Ended.ID == v:
	case r != nil && r.Phase == Exhausted:
		d.notice(AnnotationInvalid, "%s=%q: repair %s has run out of steps already; set %s=true when the node is mended", CancelKey, clip(v, 40), r.ID, ResetKey)
	case isID(v) || (r == nil && d.Record == nil):
		d.notice(AnnotationInvalid, "%s=%q: no repair of that id is under way on this node", CancelKey, clip(v, 40))
	default:
		if d.Record != nil {
			r = d.Record
		}
		d.notice(AnnotationInvalid, "%s=%q is not understood: write the repair's id, %s=%s. The node is paused meanwhile; remove %s to go on", CancelKey, clip(v, 40), CancelKey, r.ID, PauseKey)
		if _, paused := s.Node.Annotations[PauseKey]; !paused {
			d.Pause = fmt.Sprintf("true %s=%s was not understood", CancelKey, clip(v, 40))
		}
	}
}

// glassFor is how long a broken glass stays broken.
const glassFor = time.Hour

// glass takes drydock.dev/break-glass off when its hour is over.
func (s *State) glass(d *Decision, now time.Time) {
	if _, broken := s.Node.Annotations[BreakGlassKey]; !broken {
		return
	}
	since := s.glassSince()
	if s.glassMended(now) {
		if !s.clockTrusted(d, now) {
			return
		}
		d.Consume = append(d.Consume, BreakGlassKey)
		d.notice(GlassMended, "%s was set at %s and is taken off after %s; Drydock goes on with this node", BreakGlassKey, since.Format(time.RFC3339), glassFor)
	} else if over := since.Add(glassFor); !since.IsZero() && (d.Recheck.IsZero() || over.Before(d.Recheck)) {
		d.Recheck = over
	}
}

// clockTrusted asks the kubelets' leases whether this process's clock can be right, before a person's word is taken off
// because its time is over: a clock that is hours ahead would end every pause for good.
func (s *State) clockTrusted(d *Decision, now time.Time) bool {
	if h := s.Heartbeats; h == nil || now.Sub(h.ReadAt) > LookFor {
		d.Ask.Heartbeats = true
		return false
	}
	return s.Heartbeats.Blind() == ""
}

// glassMended says that the hour is over.
func (s *State) glassMended(now time.Time) bool {
	since := s.glassSince()
	return !since.IsZero() && !now.Before(since.Add(glassFor))
}

// glassSince is when the glass was first seen broken; zero: not yet, or nobody knows.
func (s *State) glassSince() time.Time {
	if s.Ledger == nil {
		return time.Time{}
	}
	if g := s.Ledger.Status.Glass[s.Node.Name]; g.Why == GlassWhy(s.Node) {
		return g.Since
	}
	return time.Time{}
}

// GlassBroken says whether a person set drydock.dev/break-glass on the node, whatever it says.
func GlassBroken(n *corev1.Node) bool { _, ok := n.Annotations[BreakGlassKey]; return ok }

// GlassWhy is why the node's glass was broken, cut as the ledger keeps it.
func GlassWhy(n *corev1.Node) string { return clip(n.Annotations[BreakGlassKey], 80) }
