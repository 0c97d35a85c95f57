package remediations

import (
	"fmt"
	"time"
)

// confirmedAs lets one guard through the verdict of the Alertmanagers, which carries its own reason.
func confirmedAs(reason Reason) func(*candidate) *Finding {
	return func(c *candidate) *Finding {
		if c.verdict.Reason != reason || (reason == AlertUnconfirmed && c.resolved()) {
			return nil
		}
		return &Finding{Message: c.verdict.Message, Until: c.verdict.Until, fleetwide: c.verdict.fleetwide}
	}
}

func blind(c *candidate) *Finding {
	if why := c.Word.BlindCause(c.Config); why != "" {
		return Because("%s; no alert is acted upon until that ends", why)
	}
	if c.verdict.Reason == Blind {
		return &Finding{Message: c.verdict.Message}
	}
	return nil
}

func leasesBlind(c *candidate) *Finding {
	if why := c.Heartbeats.Blind(); why != "" {
		return Because("%s; nothing is done until that ends", why)
	}
	return nil
}

// resolved says that the alert is over: nobody has it, and either it was said to be resolved or this repair has
// already acted, so that its end is the likely effect.
func (c *candidate) resolved() bool {
	return c.verdict.Gone && (c.alert == nil || c.alert.Status == StatusResolved || c.acted())
}

func alertResolved(c *candidate) *Finding {
	if c.request != "" || !c.resolved() {
		return nil
	}
	return Because("the alert is over; nothing more is done unless it fires again")
}

func nodeTooYoung(c *candidate) *Finding {
	if ReadyCondition(c.Node) == nil {
		return Because("the node has no Ready condition yet; no data is not a fault")
	}
	if grown := c.Node.CreationTimestamp.Add(c.Config.Limits.StartupGrace); c.now.Before(grown) {
		return &Finding{Message: fmt.Sprintf("the node is younger than limits.startupGrace (%s)", c.Config.Limits.StartupGrace), Until: grown}
	}
	return nil
}

func alertTooYoung(c *candidate) *Finding {
	if due := c.firingSince().Add(c.policy.For); c.request == "" && c.now.Before(due) {
		return &Finding{Message: fmt.Sprintf("Drydock has not seen the alert fire for %s yet", c.policy.For), Until: due}
	}
	return nil
}

// firingSince is when Drydock first saw the alert, or when it began where that is later: it was over in between then, and
// nobody said so. What whoever sends an alert says of its beginning never makes it older than Drydock has seen it.
func (c *candidate) firingSince() time.Time {
	if c.alert == nil {
		return c.verdict.StartsAt // the repair has acted already, and its alert's key is gone
	}
	if starts := c.verdict.StartsAt; starts.After(c.alert.ReceivedAt) && !starts.After(c.now) {
		return starts
	}
	return c.alert.ReceivedAt
}
