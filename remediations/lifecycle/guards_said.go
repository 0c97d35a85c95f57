package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

func excluded(c *Candidate) *Finding {
	if !remediations.Excluded(c.Node) {
		return nil
	}
	return Because("the label %s=%s takes the node out of Drydock's hands; remove it to end that", remediations.ExcludeLabel, text.Line(c.Node.Labels[remediations.ExcludeLabel], 63))
}

func paused(c *Candidate) *Finding {
	// For a sidecar or a leader both stand until Decide takes them off, once the leases agree that their time is over.
	if why, broken := c.Node.Annotations[remediations.BreakGlassKey]; broken && (c.Kind != remediations.KindNode || !c.GlassMended(c.Now)) {
		f := Because("%s is set (%s); remove it to end that", remediations.BreakGlassKey, text.Line(why, 80))
		if since := c.GlassSince(); !since.IsZero() {
			f.Until = since.Add(GlassFor)
		}
		return f
	}
	if v, ok := c.Node.Annotations[remediations.CancelKey]; ok && !remediations.IsID(v) {
		return Because("somebody wrote %s=%q and may have meant this repair", remediations.CancelKey, text.Line(v, 40))
	}
	v, ok := c.Node.Annotations[remediations.PauseKey]
	if !ok {
		return cancelled(c)
	}
	p, err := remediations.ParsePause(v)
	switch {
	case err != nil:
		return Because("%v; until then the node is paused", err)
	case p.Until.IsZero():
		return Because("paused by %s%s; remove it to go on", remediations.PauseKey, Aside(p.Why))
	case c.Kind != remediations.KindNode || c.Now.Before(p.Until):
		return &Finding{Message: fmt.Sprintf("paused by %s%s", remediations.PauseKey, Aside(p.Why)), Until: p.Until}
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
	by := c.Journal.Cancelled(c.Alert)
	if by == nil || remediations.Instant(startsAt).After(by.At) {
		return nil
	}
	f := Because("repair %s of this alert was cancelled at %s; another begins when the alert has ended and fires again", by.ID, by.At.Format(time.RFC3339))
	if c.Kind == remediations.KindNode { // a request names no pod, and no location
		f.Message += fmt.Sprintf(", or by %s=%s%s", remediations.RequestKey, remediations.RequestPolicy, c.Policy.Name)
	}
	return f
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
	return Because("the node was cordoned, and not by this repair; somebody may be at work on it. Uncordon it, or set repairCordoned in policy %s", c.Policy.Name)
}

func (c *Candidate) cordonedByUs() bool {
	r := c.Journal.Record
	return r != nil && slices.ContainsFunc(r.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon })
}

// awaitingApproval holds the first step of a repair whose policy wants a person's word.
func awaitingApproval(c *Candidate) *Finding {
	r := c.record()
	if !c.Policy.Approval || c.Acted() || (r != nil && r.ID == c.Own && c.Node.Annotations[remediations.ApproveKey] == c.Own) {
		return nil
	}
	return Because("policy %s wants a person's approval: kubectl drydock approve %s, or kubectl annotate node %[2]s %s=%s", c.Policy.Name, c.Node.Name, remediations.ApproveKey, c.Own)
}

// GlassFor is how long a broken glass stays broken.
const GlassFor = time.Hour

// GlassMended says that the hour is over.
func (s *State) GlassMended(now time.Time) bool {
	since := s.GlassSince()
	return !since.IsZero() && !now.Before(since.Add(GlassFor))
}

// GlassSince is when the glass was first seen broken; zero: not yet, or nobody knows.
func (s *State) GlassSince() time.Time {
	if s.Ledger == nil {
		return time.Time{}
	}
	if g := s.Ledger.Status.Glass[s.Node.Name]; g.Why == GlassWhy(s.Node) {
		return g.Since
	}
	return time.Time{}
}

// GlassBroken says whether a person set drydock.dev/break-glass on the node, whatever it says.
func GlassBroken(n *corev1.Node) bool { _, ok := n.Annotations[remediations.BreakGlassKey]; return ok }

// GlassWhy is why the node's glass was broken, cut as the ledger keeps it.
func GlassWhy(n *corev1.Node) string { return text.Line(n.Annotations[remediations.BreakGlassKey], 80) }

// confirmedAs lets one guard through the verdict of the Alertmanagers, which carries its own reason.
func confirmedAs(reason remediations.Reason) func(*Candidate) *Finding {
	return func(c *Candidate) *Finding {
		if c.Verdict.Reason != reason || (reason == remediations.AlertUnconfirmed && c.Resolved()) {
			return nil
		}
		return &Finding{Message: c.Verdict.Message, Until: c.Verdict.Until, Fleetwide: c.Verdict.Fleetwide}
	}
}

func blind(c *Candidate) *Finding {
	if why := c.Word.BlindCause(c.Config); why != "" {
		return Because("%s; no alert is acted upon until that ends", why)
	}
	if c.Verdict.Reason == remediations.Blind {
		return &Finding{Message: c.Verdict.Message}
	}
	return nil
}

func leasesBlind(c *Candidate) *Finding {
	if why := c.Heartbeats.Blind(); why != "" {
		return Because("%s; nothing is done until that ends", why)
	}
	return nil
}

// Resolved says that the alert is over: nobody has it, and either it was said to be resolved or this repair has
// already acted, so that its end is the likely effect.
func (c *Candidate) Resolved() bool {
	return c.Verdict.Gone && (c.Alert == nil || c.Alert.Status == remediations.StatusResolved || c.Acted())
}

func alertResolved(c *Candidate) *Finding {
	if c.Request != "" || !c.Resolved() {
		return nil
	}
	return Because("the alert is over; nothing more is done unless it fires again")
}

func nodeTooYoung(c *Candidate) *Finding {
	if remediations.ReadyCondition(c.Node) == nil {
		return Because("the node has no Ready condition yet; no data is not a fault")
	}
	if grown := c.Node.CreationTimestamp.Add(c.Config.Limits.StartupGrace); c.Now.Before(grown) {
		return &Finding{Message: fmt.Sprintf("the node is younger than limits.startupGrace (%s)", c.Config.Limits.StartupGrace), Until: grown}
	}
	return nil
}

func alertTooYoung(c *Candidate) *Finding {
	if due := c.firingSince().Add(c.Policy.For); c.Request == "" && c.Now.Before(due) {
		return &Finding{Message: fmt.Sprintf("Drydock has not seen the alert fire for %s yet", c.Policy.For), Until: due}
	}
	return nil
}

// firingSince is when Drydock first saw the alert, or when it began where that is later: it was over in between then, and
// nobody said so. What whoever sends an alert says of its beginning never makes it older than Drydock has seen it.
func (c *Candidate) firingSince() time.Time {
	if c.Alert == nil {
		return c.Verdict.StartsAt // the repair has acted already, and its alert's key is gone
	}
	if starts := c.Verdict.StartsAt; starts.After(c.Alert.ReceivedAt) && !starts.After(c.Now) {
		return starts
	}
	return c.Alert.ReceivedAt
}

func nodeLeaving(c *Candidate) *Finding {
	if why := c.Config.HoldWhen.Leaving(c.Node, c.Journal); why != "" {
		return Because("%s", why)
	}
	return nil
}

// observing comes last, so that it is reached only by what would be done this very moment.
func observing(c *Candidate) *Finding {
	if c.Policy.Mode == remediations.ModeEnforce {
		return nil
	}
	return Because("would %s %s now (attempt %d) %s; the mode is observe", c.Remediation().Verb, c.Subject, c.Step.Attempt, c.By())
}
