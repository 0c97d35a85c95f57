package remediations

import (
	"fmt"
	"slices"
	"time"
)

func excluded(c *Candidate) *Finding {
	if !Excluded(c.Node) {
		return nil
	}
	return Because("the label %s=%s takes the node out of Drydock's hands; remove it to end that", ExcludeLabel, clip(c.Node.Labels[ExcludeLabel], 63))
}

func paused(c *Candidate) *Finding {
	// For a sidecar or a leader both stand until Decide takes them off, once the leases agree that their time is over.
	if why, broken := c.Node.Annotations[BreakGlassKey]; broken && (c.Kind != KindNode || !c.glassMended(c.Now)) {
		f := Because("%s is set (%s); remove it to end that", BreakGlassKey, clip(why, 80))
		if since := c.glassSince(); !since.IsZero() {
			f.Until = since.Add(glassFor)
		}
		return f
	}
	if v, ok := c.Node.Annotations[CancelKey]; ok && !isID(v) {
		return Because("somebody wrote %s=%q and may have meant this repair", CancelKey, clip(v, 40))
	}
	v, ok := c.Node.Annotations[PauseKey]
	if !ok {
		return cancelled(c)
	}
	p, err := ParsePause(v)
	switch {
	case err != nil:
		return Because("%v; until then the node is paused", err)
	case p.Until.IsZero():
		return Because("paused by %s%s; remove it to go on", PauseKey, Aside(p.Why))
	case c.Kind != KindNode || c.Now.Before(p.Until):
		return &Finding{Message: fmt.Sprintf("paused by %s%s", PauseKey, Aside(p.Why)), Until: p.Until}
	}
	return cancelled(c)
}

// cancelled holds an alert whose last repair a person cancelled, until it has ended and fires again: the next repair
// would only be the cancelled one under another name.
func cancelled(c *Candidate) *Finding {
	if c.Alert == nil || c.Acted() {
		return nil
	}
	startsAt := c.Verdict.StartsAt
	if startsAt.IsZero() {
		startsAt = c.Alert.StartsAt
	}
	by := c.Journal.cancelled(c.Alert)
	if by == nil || Instant(startsAt).After(by.At) {
		return nil
	}
	f := Because("repair %s of this alert was cancelled at %s; another begins when the alert has ended and fires again", by.ID, by.At.Format(time.RFC3339))
	if c.Kind == KindNode { // a request names no pod, and no location
		f.Message += fmt.Sprintf(", or by %s=%s%s", RequestKey, requestPolicy, c.Policy.Name)
	}
	return f
}

// cancelled is the last repair of the alert, if a person cancelled it. The history goes before what the alert remembers,
// because a repair that acted since is in it.
func (j Journal) cancelled(a *Alert) *CancelledRepair {
	for _, e := range j.History {
		switch {
		case e.Cause != a.Fingerprint || (e.By == "" && len(e.Steps) == 0):
		case e.By == ByPerson:
			return &CancelledRepair{ID: e.ID, At: e.Ended}
		default:
			return nil
		}
	}
	return a.Cancelled
}

// remember writes on each alert whose last repair a person cancelled that this is so, before the history forgets it. It is
// asked of all alerts on the Node, those about pods and locations, too.
func (s *State) remember(d *Decision) {
	for _, a := range s.Journal.Alerts {
		by := s.Journal.cancelled(&a)
		if by == nil || (a.Cancelled != nil && *a.Cancelled == *by) || slices.Contains(d.Prune, a.Key()) {
			continue
		}
		a.Cancelled = by
		d.Alerts = append(d.Alerts, a)
	}
}

func Aside(why string) string {
	if why == "" {
		return ""
	}
	return " (" + clip(why, 80) + ")"
}

func cordonedByOther(c *Candidate) *Finding {
	if !c.Node.Spec.Unschedulable || c.Policy.RepairCordoned || c.cordonedByUs() {
		return nil
	}
	return Because("the node was cordoned, and not by this repair; somebody may be at work on it. Uncordon it, or set repairCordoned in policy %s", c.Policy.Name)
}

func (c *Candidate) cordonedByUs() bool {
	r := c.Journal.Record
	return r != nil && slices.ContainsFunc(r.Undo, func(u Undo) bool { return u.Kind == UndoCordon })
}

// awaitingApproval holds the first step of a repair whose policy wants a person's word.
func awaitingApproval(c *Candidate) *Finding {
	r := c.record()
	if !c.Policy.Approval || c.Acted() || (r != nil && r.ID == c.Own && c.Node.Annotations[ApproveKey] == c.Own) {
		return nil
	}
	return Because("policy %s wants a person's approval: kubectl drydock approve %s, or kubectl annotate node %[2]s %s=%s", c.Policy.Name, c.Node.Name, ApproveKey, c.Own)
}
