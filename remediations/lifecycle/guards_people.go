package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

func excluded(c *Candidate) *Finding {
	if !remediations.Excluded(c.Node) {
		return nil
	}
	return Because("the node has the label %s=%s; to allow repairs: kubectl label node %s %[1]s-", remediations.ExcludeLabel, text.Line(c.Node.Labels[remediations.ExcludeLabel], 63), c.Node.Name)
}

func paused(c *Candidate) *Finding {
	// An expired annotation still holds most targets, until the node leases confirm Drydock's clock
	// and Drydock removes it (see Description.TakesOff).
	if why, broken := c.Node.Annotations[remediations.BreakGlassKey]; broken && (!c.takesOff() || !c.BreakGlassExpired(c.Now)) {
		f := Because("%s is set (%s); to allow repairs: kubectl drydock resume %s", remediations.BreakGlassKey, text.Line(why, 80), c.Node.Name)
		if since := c.BreakGlassSince(); !since.IsZero() {
			f.Until = since.Add(BreakGlassFor)
		}
		return f
	}
	if v, ok := c.Node.Annotations[remediations.CancelKey]; ok && !remediations.IsID(v) {
		return Because("the annotation %s=%q is not a repair's ID and may mean this repair; correct or remove it", remediations.CancelKey, text.Line(v, 40))
	}
	v, ok := c.Node.Annotations[remediations.PauseKey]
	if !ok {
		return cancelled(c)
	}
	p, err := remediations.ParsePause(v)
	switch {
	case err != nil:
		return Because("%v; until the value is corrected, the node is paused", err)
	case p.Until.IsZero():
		return Because("paused by %s%s; to allow repairs: kubectl drydock resume %s", remediations.PauseKey, Aside(p.Why), c.Node.Name)
	case !c.takesOff() || c.Now.Before(p.Until):
		return &Finding{Message: fmt.Sprintf("paused by %s%s", remediations.PauseKey, Aside(p.Why)), Until: p.Until}
	}
	return cancelled(c)
}

func (c *Candidate) takesOff() bool { return c.is.TakesOff }

// cancelled holds a new repair for an alert whose last repair a person cancelled, until the alert
// has ended and fires again. Otherwise the repair would begin again with another id.
func cancelled(c *Candidate) *Finding {
	if c.Alert == nil || c.Acted() {
		return nil
	}
	startsAt := c.Verdict.StartsAt
	if startsAt.IsZero() {
		startsAt = c.Alert.StartsAt
	}
	by := c.CancelOf(c.Alert, c.Now)
	if by == nil {
		return nil
	}
	still := ""
	if remediations.Instant(startsAt).After(by.At) {
		// After an outage of Prometheus the alert has a later start, although the fault is the
		// same. So the hold continues if the node's conditions have shown the fault all the time
		// since the cancel.
		if still = signs.IllSince(c.Signs(), c.seen(), by.At); still == "" {
			return nil
		}
	}
	f := Because("repair %s of this alert was cancelled at %s; another begins when the alert has ended and fires again", by.ID, by.At.Format(time.RFC3339))
	if c.is.OnRequest {
		f.Message += fmt.Sprintf(", or by %s=%s%s", remediations.RequestKey, remediations.RequestPolicy, c.Policy.Name)
	}
	if still != "" {
		f.Message += "; the alert has a later start, but the node shows the same fault: " + still
	}
	return f
}

// CancelOf returns the last repair of the alert if a person cancelled it. The Node may have lost
// its annotations, so the ledger counts, too, unless the Node shows a later cancel or a later
// repair that acted.
func (s *State) CancelOf(a *remediations.Alert, now time.Time) *remediations.CancelledRepair {
	by := s.Journal.Cancelled(a)
	if s.Ledger == nil {
		return by
	}
	known := s.Ledger.CancelKnown(s.Node, a.Fingerprint, now, s.Config.Limits.RepairsWindow)
	if known == nil || by != nil && !by.At.Before(known.At) || s.actedSince(a, known.At) {
		return by
	}
	return &remediations.CancelledRepair{ID: known.Repair, At: known.At}
}

// actedSince reports whether a later repair of the alert issued a step and was not ended by a
// person.
func (s *State) actedSince(a *remediations.Alert, since time.Time) bool {
	return slices.ContainsFunc(s.Journal.History, func(e remediations.Entry) bool {
		return e.Cause == a.Fingerprint && e.By == "" && len(e.Steps) > 0 && e.Ended.After(since)
	})
}

func Aside(why string) string {
	if why == "" {
		return ""
	}
	return " (" + text.Line(why, 80) + ")"
}

func cordonedByOther(c *Candidate) *Finding {
	if !c.Node.Spec.Unschedulable || c.Policy.RepairCordoned || c.cordonedByUs() {
		return nil
	}
	f := Because("the node is cordoned, and not by this repair; a person may be working on it. Uncordon the node, or set repairCordoned in policy %s", c.Policy.Name)
	if overdue := c.Config.HoldWhen.Claim(c.Node, c.Journal, c.Now).Overdue; overdue != "" {
		f.Message += "; " + overdue
	}
	return f
}

func (c *Candidate) cordonedByUs() bool {
	r := c.Journal.Record
	return r != nil && slices.ContainsFunc(r.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon })
}

func awaitingApproval(c *Candidate) *Finding {
	r := c.record()
	if !c.Policy.Approval || c.Acted() || (r != nil && r.ID == c.Own && c.Node.Annotations[remediations.ApproveKey] == c.Own) {
		return nil
	}
	return Because("policy %s needs a person's approval: kubectl drydock approve %s, or kubectl annotate node %[2]s %s=%s", c.Policy.Name, c.Node.Name, remediations.ApproveKey, c.Own)
}

// observing is the last guard, so that its message appears only for a step that no other guard
// holds.
func observing(c *Candidate) *Finding {
	if c.Policy.Mode == remediations.ModeEnforce {
		return nil
	}
	return Because("would %s %s now (attempt %d) %s; the mode is observe", c.Remediation().Verb, c.Subject, c.Step.Attempt, c.By())
}
