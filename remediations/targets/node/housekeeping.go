package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

func (s *state) prune(d *lifecycle.Decision, now time.Time) {
	for k := range s.Node.Annotations {
		// The key is Drydock's own, but its unreadable value is not. If the alert exists, the next
		// poll of Alertmanager writes it again.
		if fingerprint, ours := strings.CutPrefix(k, remediations.AlertPrefix); ours && s.AlertBy(fingerprint) == nil {
			d.Prune = append(d.Prune, k)
		}
	}
	slices.Sort(d.Prune)
	// If Alertmanager's answers are too old, no alert counts as ended, except that of a cured
	// repair: its proof used fresh answers.
	stale := s.Stale() || d.Verb == lifecycle.VerbLook
	kept := s.Record
	switch {
	case d.Record != nil:
		kept = d.Record
	case d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop || d.Verb == lifecycle.VerbReset:
		kept = nil
	}
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if p := s.Config.Policy(a.Policy); p != nil && p.Kind != remediations.KindNode {
			continue // the decision about that sidecar or leader removes the alert
		}
		if (kept == nil || kept.Phase == remediations.PhaseExhausted || kept.Cause.Alert != a.Fingerprint) && ((!stale && s.Over(a, now)) || cures(d, a)) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
}

// cures reports whether the proof of a cure shows that the alert has ended. The copy of the alert
// on the Node may not show it yet.
func cures(d *lifecycle.Decision, a *remediations.Alert) bool {
	return d.Verb == lifecycle.VerbEnd && d.Ended.Cause == a.Fingerprint && (d.Ended.Outcome == remediations.OutcomeRecovered || d.Ended.Outcome == remediations.OutcomeSelfRecovered)
}

// consume removes people's annotations that have expired or that this decision answers. It reports
// invalid ones.
func (s *state) consume(d *lifecycle.Decision, now time.Time) {
	if v, ok := s.Node.Annotations[remediations.PauseKey]; ok {
		p, err := remediations.ParsePause(v)
		switch {
		case err != nil:
			notice(d, lifecycle.AnnotationInvalid, "%v", err)
		case !p.Until.IsZero() && !now.Before(p.Until) && s.clockTrusted(d, now):
			d.Consume = append(d.Consume, remediations.PauseKey)
		}
	}
	s.consumeRequest(d)
	s.approval(d)
	s.cancellation(d)
	s.expireBreakGlass(d, now)
	v, resets := s.Node.Annotations[remediations.ResetKey]
	switch {
	case resets && s.Ledger == nil && remediations.ParseReset(v) == nil:
		if _, f := s.WithoutLedger(now); f != nil {
			notice(d, lifecycle.AnnotationInvalid, "%s waits until Drydock can read and save its ledger", remediations.ResetKey)
		}
	case resets:
		d.Consume = append(d.Consume, remediations.ResetKey)
		if err := remediations.ParseReset(v); err != nil {
			notice(d, lifecycle.AnnotationInvalid, "%v", err)
		} else if d.Verb != lifecycle.VerbReset && len(d.Prune) == 0 && !d.Forgets() && s.Reset == "" {
			notice(d, lifecycle.AnnotationInvalid, "%s: there is no exhausted or malformed repair on this node to forget", remediations.ResetKey)
		}
	}
}

// approval handles drydock.dev/approve, whose value is a repair's id. The annotation stays until
// that repair's first step. If no such repair waits, it is removed and reported.
func (s *state) approval(d *lifecycle.Decision) {
	v, ok := s.Node.Annotations[remediations.ApproveKey]
	if !ok {
		return
	}
	r := s.Record
	for _, other := range s.Journal.Records {
		if other.ID == v && other.Phase == remediations.PhasePending && other.Intent == nil {
			return // the decision about that target consumes the annotation
		}
	}
	if r != nil && r.ID == v && r.Phase == remediations.PhasePending && r.Intent == nil && d.Verb != lifecycle.VerbIssue && d.Verb != lifecycle.VerbDrop && d.Verb != lifecycle.VerbEnd {
		return
	}
	d.Consume = append(d.Consume, remediations.ApproveKey)
	if d.Verb != lifecycle.VerbIssue || d.Record.ID != v {
		notice(d, lifecycle.AnnotationInvalid, "%s=%q: no repair of that id waits for approval on this node", remediations.ApproveKey, text.Line(v, 40))
	}
}

// cancellation handles drydock.dev/cancel, whose value is a repair's id. If the value is not an id,
// a person still wanted to stop a repair, so Drydock pauses the node.
func (s *state) cancellation(d *lifecycle.Decision) {
	v, ok := s.Node.Annotations[remediations.CancelKey]
	if !ok {
		return
	}
	r := s.Record
	if r != nil && r.ID == v && r.Phase == remediations.PhaseActing {
		return // Drydock does not interrupt a call
	}
	for _, other := range s.Journal.Records {
		if other.ID == v && other.Phase != remediations.PhaseExhausted {
			return // the decision about that target consumes the annotation
		}
	}
	leader := s.Journal.Location()
	d.Consume = append(d.Consume, remediations.CancelKey)
	if r == nil || (leader != nil && leader.ID == v) {
		r = leader
	}
	switch {
	case d.Verb == lifecycle.VerbEnd && d.Ended.ID == v:
	case r != nil && r.Phase == remediations.PhaseExhausted:
		notice(d, lifecycle.AnnotationInvalid, "%s=%q: repair %s has run out of steps already; set %s=true when the node is fixed", remediations.CancelKey, text.Line(v, 40), r.ID, remediations.ResetKey)
	case remediations.IsID(v) || (r == nil && d.Record == nil):
		notice(d, lifecycle.AnnotationInvalid, "%s=%q: no repair of that id is under way on this node", remediations.CancelKey, text.Line(v, 40))
	default:
		if d.Record != nil {
			r = d.Record
		}
		notice(d, lifecycle.AnnotationInvalid, "%s=%q is not understood: write the repair's id, %s=%s. The node is paused meanwhile; remove %s to continue", remediations.CancelKey, text.Line(v, 40), remediations.CancelKey, r.ID, remediations.PauseKey)
		if _, paused := s.Node.Annotations[remediations.PauseKey]; !paused {
			d.Pause = fmt.Sprintf("true %s=%s was not understood", remediations.CancelKey, text.Line(v, 40))
		}
	}
}

func (s *state) expireBreakGlass(d *lifecycle.Decision, now time.Time) {
	if _, broken := s.Node.Annotations[remediations.BreakGlassKey]; !broken {
		return
	}
	since := s.BreakGlassSince()
	if s.BreakGlassExpired(now) {
		if !s.clockTrusted(d, now) {
			return
		}
		d.Consume = append(d.Consume, remediations.BreakGlassKey)
		notice(d, lifecycle.BreakGlassExpired, "%s was set at %s and is removed after %s; Drydock may repair this node again", remediations.BreakGlassKey, since.Format(time.RFC3339), text.Duration(lifecycle.BreakGlassFor))
	} else if over := since.Add(lifecycle.BreakGlassFor); !since.IsZero() && (d.Recheck.IsZero() || over.Before(d.Recheck)) {
		d.Recheck = over
	}
}

// clockTrusted asks the kubelets' leases before a person's annotation expires. Otherwise a clock
// that is hours ahead would end every pause.
func (s *state) clockTrusted(d *lifecycle.Decision, now time.Time) bool {
	if h := s.Heartbeats; h == nil || now.Sub(h.ReadAt) > remediations.LookFor {
		d.Ask.Heartbeats = true
		return false
	}
	return s.Heartbeats.Blind() == ""
}

func notice(d *lifecycle.Decision, reason lifecycle.NoticeReason, format string, args ...any) {
	d.Notices = append(d.Notices, lifecycle.Notice{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// remember stores in each alert that a person cancelled its last repair, because the history does
// not keep old repairs.
func (s *state) remember(d *lifecycle.Decision) {
	for _, a := range s.Journal.Alerts {
		by := s.Journal.Cancelled(&a)
		if by == nil || (a.Cancelled != nil && *a.Cancelled == *by) || slices.Contains(d.Prune, a.Key()) || slices.Contains(d.Uncancel, a.Fingerprint) {
			continue
		}
		a.Cancelled = by
		d.Alerts = append(d.Alerts, a)
	}
}

// rememberEnds copies what holds the next repair from the Node to the ledger. Others can delete the
// Node's annotations, but not the ledger.
func (s *state) rememberEnds(d *lifecycle.Decision, now time.Time) {
	if s.Ledger == nil || d.Verb == lifecycle.VerbReset {
		return
	}
	last := map[string]bool{}
	for _, e := range s.Journal.History {
		end, ok := ledger.EndOf(s.Config, e)
		if !ok || last[e.Policy] || s.Config.Policy(e.Policy) == nil {
			continue
		}
		if last[e.Policy] = true; s.Ledger.Lacks(s.Config, s.Node, end, now) {
			d.Ends = append(d.Ends, end)
		}
	}
	for _, a := range s.Journal.Alerts {
		if slices.Contains(d.Uncancel, a.Fingerprint) {
			continue // a person's reset ends the cancel
		}
		known := s.Ledger.CancelKnown(s.Node, a.Fingerprint, now, 0)
		by := s.CancelOf(&a, now)
		if by == nil || slices.Contains(d.Prune, a.Key()) {
			if known != nil {
				d.CancelsOver = append(d.CancelsOver, a.Fingerprint)
			}
			continue
		}
		if known == nil && s.Journal.Cancelled(&a) == nil {
			continue // the ledger knows the cancel only by the Node's name; it counts for limits.repairsWindow
		}
		if end := ledger.CancelOf(a, *by, now); s.Ledger.Lacks(s.Config, s.Node, end, now) {
			d.Ends = append(d.Ends, end)
		}
	}
}
