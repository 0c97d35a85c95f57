package remediations

import (
	"fmt"
	"time"
)

// confirmedAs lets one guard through the verdict of the Alertmanagers, which carries its own reason.
func confirmedAs(reason Reason) func(*candidate) *finding {
	return func(c *candidate) *finding {
		if c.verdict.reason != reason || (reason == AlertUnconfirmed && c.resolved()) {
			return nil
		}
		return &finding{message: c.verdict.message, until: c.verdict.until, fleetwide: c.verdict.fleetwide}
	}
}

func blind(c *candidate) *finding {
	if why := c.Word.BlindCause(c.Config); why != "" {
		return because("%s; no alert is acted upon until that ends", why)
	}
	if c.verdict.reason == Blind {
		return &finding{message: c.verdict.message}
	}
	return nil
}

func leasesBlind(c *candidate) *finding {
	if why := c.Heartbeats.Blind(); why != "" {
		return because("%s; nothing is done until that ends", why)
	}
	return nil
}

// resolved says that the alert is over: nobody has it, and either it was said to be resolved or this repair has
// already acted, so that its end is the likely effect.
func (c *candidate) resolved() bool {
	return c.verdict.gone && (c.alert == nil || c.alert.Status == StatusResolved || c.acted())
}

func alertResolved(c *candidate) *finding {
	if c.request != "" || !c.resolved() {
		return nil
	}
	return because("the alert is over; nothing more is done unless it fires again")
}

func nodeTooYoung(c *candidate) *finding {
	if ReadyCondition(c.Node) == nil {
		return because("the node has no Ready condition yet; no data is not a fault")
	}
	if grown := c.Node.CreationTimestamp.Add(c.Config.Limits.StartupGrace); c.now.Before(grown) {
		return &finding{message: fmt.Sprintf("the node is younger than limits.startupGrace (%s)", c.Config.Limits.StartupGrace), until: grown}
	}
	return nil
}

func alertTooYoung(c *candidate) *finding {
	if due := c.firingSince().Add(c.policy.For); c.request == "" && c.now.Before(due) {
		return &finding{message: fmt.Sprintf("Drydock has not seen the alert fire for %s yet", c.policy.For), until: due}
	}
	return nil
}

// firingSince is when Drydock first saw the alert, or when it began where that is later: it was over in between then, and
// nobody said so. What whoever sends an alert says of its beginning never makes it older than Drydock has seen it.
func (c *candidate) firingSince() time.Time {
	if c.alert == nil {
		return c.verdict.startsAt // the repair has acted already, and its alert's key is gone
	}
	if starts := c.verdict.startsAt; starts.After(c.alert.ReceivedAt) && !starts.After(c.now) {
		return starts
	}
	return c.alert.ReceivedAt
}
