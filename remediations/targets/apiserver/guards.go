package apiserver

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// rescuer is one restart of an API server that might be issued now, as its guards see it.
type rescuer struct {
	*State
	now     time.Time
	policy  *remediations.Policy
	alert   *remediations.Alert
	verdict remediations.Verdict
	// acted: the rescue has restarted something already. own is its id.
	acted bool
	own   string
	// host is the one that is next; empty: nobody has looked yet. unknown are those of which nothing is known.
	host, unknown string
}

// rescueGuards in the order in which they are asked. RecordMalformed comes before all of them. Those that a node's repair has
// besides speak of Nodes, or of what Nodes say.
var rescueGuards = []struct {
	reason remediations.Reason
	find   func(*rescuer) *remediations.Finding
}{
	{remediations.Paused, rescuePaused},
	{remediations.AlertUnconfirmed, rescueConfirmed(remediations.AlertUnconfirmed)},
	{remediations.Silenced, rescueConfirmed(remediations.Silenced)},
	{remediations.Inhibited, rescueConfirmed(remediations.Inhibited)},
	{remediations.AlertResolved, rescueResolved},
	{remediations.TooYoung, rescueTooYoung},
	{remediations.OutsideWindow, rescueOutsideWindow},
	{remediations.Cooldown, rescueCooldown},
	{remediations.RepairsSpent, rescuesSpent},
	{remediations.Observing, rescueObserving},
}

func (c *rescuer) hold() (remediations.Reason, *remediations.Finding) {
	for _, g := range rescueGuards {
		if f := g.find(c); f != nil {
			return g.reason, f
		}
	}
	return "", nil
}

// pausedBy reads the file named paused: as drydock.dev/pause, or else its text is why. nil: it does not hold, or no more.
func (j RescueJournal) pausedBy(now time.Time) *remediations.Finding {
	if j.Paused == nil {
		return nil
	}
	p, err := remediations.ParsePause(*j.Paused)
	switch {
	case err != nil:
		p = remediations.Pause{Why: strings.TrimSpace(*j.Paused)}
	case !p.Until.IsZero() && !now.Before(p.Until):
		return nil
	}
	return &remediations.Finding{Message: fmt.Sprintf("paused by the file named paused in the state directory%s; remove it to go on", remediations.Aside(p.Why)), Until: p.Until}
}

func rescuePaused(c *rescuer) *remediations.Finding { return c.Journal.pausedBy(c.now) }

// resolved says that the alert is over, as for a node.
func (c *rescuer) resolved() bool {
	return c.verdict.Gone && (c.acted || c.alert.Status == remediations.StatusResolved)
}

// rescueConfirmed lets one guard through the verdict of the Alertmanagers. Blindness is a word that does not count: here it
// has no guard of its own, since what blinds Drydock to nodes may well be the API servers' end itself.
func rescueConfirmed(reason remediations.Reason) func(*rescuer) *remediations.Finding {
	return func(c *rescuer) *remediations.Finding {
		said := c.verdict.Reason
		if said == remediations.Blind {
			said = remediations.AlertUnconfirmed
		}
		if said != reason || (reason == remediations.AlertUnconfirmed && c.resolved()) {
			return nil
		}
		return &remediations.Finding{Message: c.verdict.Message, Until: c.verdict.Until}
	}
}

func rescueResolved(c *rescuer) *remediations.Finding {
	if !c.resolved() {
		return nil
	}
	return remediations.Because("the alert is over; nothing more is done unless it fires again")
}

func rescueTooYoung(c *rescuer) *remediations.Finding {
	if due := c.verdict.StartsAt.Add(c.policy.For); c.now.Before(due) {
		return &remediations.Finding{Message: fmt.Sprintf("the alert has not been firing for %s yet", c.policy.For), Until: due}
	}
	return nil
}

func rescueOutsideWindow(c *rescuer) *remediations.Finding {
	if open, next := c.Config.InWindow(c.now); !open {
		return &remediations.Finding{Message: "outside all of the configured windows", Until: next}
	}
	return nil
}

func rescueCooldown(c *rescuer) *remediations.Finding {
	if c.acted {
		return nil
	}
	for _, e := range c.Journal.Ended {
		if e.ID == c.Journal.Forgotten {
			return nil
		}
		if e.Policy != c.policy.Name || len(e.Hosts) == 0 {
			continue
		}
		if over := e.Ended.Add(c.policy.Cooldown); c.now.Before(over) {
			return &remediations.Finding{Message: fmt.Sprintf("the last rescue by policy %s ended at %s; its cooldown is %s", e.Policy, e.Ended.Format(time.RFC3339), c.policy.Cooldown), Until: over}
		}
		return nil
	}
	return nil
}

func (c *rescuer) spent(host string) bool {
	count, _ := c.begun(host, c.own, c.now)
	return count >= c.Config.Limits.RepairsPerNode
}

func rescuesSpent(c *rescuer) *remediations.Finding {
	if c.host == "" || !c.spent(c.host) {
		return nil
	}
	l := c.Config.Limits
	count, oldest := c.begun(c.host, c.own, c.now)
	return &remediations.Finding{
		Message: fmt.Sprintf("%d rescues restarted the kubelet of %s within %s, and of each other host whose API server fails, limits.repairsPerNode is %d; somebody must look", count, c.host, l.RepairsWindow, l.RepairsPerNode),
		Until:   oldest.Add(l.RepairsWindow),
	}
}

// rescueObserving comes last, so that it is reached only by what would be done this very moment.
func rescueObserving(c *rescuer) *remediations.Finding {
	if c.host == "" || c.policy.Mode == remediations.ModeEnforce {
		return nil
	}
	return remediations.Because("would %s %s now by policy %s; the mode is observe", restartKubelet.Verb, c.host, c.policy.Name)
}

// MayStillRescue asks, right before a call leaves, whether what people and the journal say still lets it.
func MayStillRescue(j RescueJournal, attempt string, now time.Time) error {
	r := j.Rescue
	switch {
	case j.Malformed != nil:
		return fmt.Errorf("the journal cannot be read any more: %w", j.Malformed)
	case r == nil || r.Phase != remediations.Acting || r.last().Attempt != attempt:
		return fmt.Errorf("the intent %s is no longer on record", attempt)
	}
	if f := j.pausedBy(now); f != nil {
		return fmt.Errorf("it was stopped in the meantime: %s", f.Message)
	}
	return nil
}

// noNode is what is known of Nodes where none can be read.
func noNode(string) *corev1.Node { return nil }
