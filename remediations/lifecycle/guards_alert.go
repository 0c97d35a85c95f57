package lifecycle

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

func confirmedAs(reason remediations.Reason) func(*Candidate) *Finding {
	return func(c *Candidate) *Finding {
		if c.Verdict.Reason != reason || (reason == remediations.ReasonAlertUnconfirmed && c.Resolved()) {
			return nil
		}
		return &Finding{Message: c.Verdict.Message, Until: c.Verdict.Until, Fleetwide: c.Verdict.Fleetwide}
	}
}

func blind(c *Candidate) *Finding {
	if why := c.Snapshot.BlindCause(c.Config); why != "" {
		return Because("%s; no alert is acted upon until that ends", why)
	}
	if c.Verdict.Reason == remediations.ReasonBlind {
		return &Finding{Message: c.Verdict.Message}
	}
	if c.Behind != "" {
		return Because("%s; no repair begins until that ends", c.Behind)
	}
	return nil
}

func writesDenied(c *Candidate) *Finding {
	if c.Denied == "" {
		return nil
	}
	return Because("%s; nothing is done on this node until the API server accepts these writes", c.Denied)
}

// storeWentBack holds disruptive steps after the API server returned an older state, for example
// after a restore of etcd. Records of steps that were issued after that state may be missing. The
// hold lasts as long as a step may take.
func storeWentBack(c *Candidate) *Finding {
	back := c.Ledger.Status.WentBack
	if back == nil || !c.Now.Before(back.Until) {
		return nil
	}
	return &Finding{Message: back.Why + "; steps that were issued since then may be missing from the records", Until: back.Until}
}

func leasesBlind(c *Candidate) *Finding {
	if why := c.Heartbeats.Blind(); why != "" {
		return Because("%s; nothing is done until that ends", why)
	}
	return nil
}

// Resolved reports whether the alert has ended: no Alertmanager has it, and Alertmanager has posted
// it as resolved. After this repair's first step that post is not needed, because the step probably
// ended the alert.
func (c *Candidate) Resolved() bool {
	return c.Verdict.Gone && (c.Alert == nil || c.Alert.Status == remediations.StatusResolved || c.Acted())
}

func alertResolved(c *Candidate) *Finding {
	if c.Request != "" || !c.Resolved() {
		return nil
	}
	return Because("the alert has ended; Drydock does nothing more unless it fires again")
}

func nodeTooYoung(c *Candidate) *Finding {
	if remediations.ReadyCondition(c.Node) == nil {
		return Because("the node has no Ready condition yet, so its state is unknown")
	}
	if grown := c.Node.CreationTimestamp.Add(c.Config.Limits.StartupGrace); c.Now.Before(grown) {
		return &Finding{Message: fmt.Sprintf("the node is younger than limits.startupGrace (%s)", text.Duration(c.Config.Limits.StartupGrace)), Until: grown}
	}
	return nil
}

func alertTooYoung(c *Candidate) *Finding {
	if due := c.firingSince().Add(c.Policy.For); c.Request == "" && c.Now.Before(due) {
		return &Finding{Message: fmt.Sprintf("the alert has been firing for less than %s since Drydock first saw it", text.Duration(c.Policy.For)), Until: due}
	}
	return nil
}

// firingSince returns when Drydock first received the alert. If the alert began later, it had ended
// in between without a post, and the later start counts. An earlier start does not count, because
// Drydock did not know the alert then.
func (c *Candidate) firingSince() time.Time {
	if c.Alert == nil {
		return c.Verdict.StartsAt // the repair has acted, and the Node no longer has the alert
	}
	if starts := c.Verdict.StartsAt; starts.After(c.Alert.ReceivedAt) && !starts.After(c.Now) {
		return starts
	}
	return c.Alert.ReceivedAt
}

func nodeLeaving(c *Candidate) *Finding {
	claim := c.Config.HoldWhen.Claim(c.Node, c.Journal, c.Now)
	if claim.Why == "" {
		return nil
	}
	return &Finding{Message: claim.Why + sinceOwnRestart(c, claim.Why), Until: claim.Until}
}
