package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// rescuer is a restart of a host's kubelet that might be made now. The core's guards check it like
// any other repair, except those that need Nodes or the ledger.
type rescuer struct {
	*lifecycle.Candidate
	state *State
	// host is empty until choose sets it. unknown has the hosts whose state is unknown, for
	// messages.
	host, unknown string
}

// These guards read the journal and the state directory instead of Nodes and the ledger.
var own = []remediations.Reason{remediations.ReasonPaused, remediations.ReasonCooldown, remediations.ReasonRepairsSpent}

// These guards depend on the host, so they are checked only after one has been chosen.
var untilChosen = []remediations.Reason{remediations.ReasonRepairsSpent, remediations.ReasonObserving}

// acted means that the rescue in the journal has already restarted a kubelet.
func (s *State) candidate(p *remediations.Policy, a *remediations.Alert, acted bool, now time.Time) *rescuer {
	c, alert, step := &rescuer{state: s}, *a, remediations.StepRef{Name: restartKubelet.Name, Attempt: 1}
	if r := s.Journal.Rescue; r != nil && r.Cause.Alert == a.Fingerprint && r.Began.Before(alert.ReceivedAt) {
		alert.ReceivedAt = r.Began // the journal has the time from before Drydock's restart
	}
	t := &target{of: c}
	t.State = &lifecycle.State{Config: s.Config, Snapshot: s.Snapshot, Guards: s.Guards}
	if acted {
		step.Attempt += len(s.Journal.Rescue.Hosts)
	}
	c.Candidate = lifecycle.CandidateOf(t, p, &alert, remediations.Cause{Alert: a.Fingerprint}, step, now)
	if acted {
		c.Repair = s.Journal.Rescue.ID
	}
	if c.Verdict.Reason == remediations.ReasonBlind {
		// The alert's state is Blind: alerts about nodes cannot be trusted. The outage of the API
		// servers may itself be the reason, so it must not hold the rescue as Blind. The alert
		// counts as unconfirmed instead.
		c.Verdict.Reason = remediations.ReasonAlertUnconfirmed
	}
	return c
}

// The method over reports whether the alert of this restart has ended.
func (c *rescuer) over(a *remediations.Alert) bool {
	return c.Verdict.Gone && (a.Status == remediations.StatusResolved || c.Now.Sub(a.ReceivedAt) >= remediations.UnconfirmedFor)
}

func (c *rescuer) choose(host, unknown string) {
	c.host, c.unknown, c.Subject = host, unknown, host
}

// The finding is nil if no guard holds the restart. If no host is chosen, only the guards that do
// not depend on the host are checked.
func (c *rescuer) held() (remediations.Reason, *lifecycle.Finding) {
	if c.host != "" {
		return c.HeldBy(nil)
	}
	return c.HeldBy(slices.DeleteFunc(slices.Clone(remediations.Reasons), func(r remediations.Reason) bool { return slices.Contains(untilChosen, r) }))
}

// target is only for the guards of package lifecycle. A rescue has a lifecycle of its own, in the
// journal.
type target struct {
	lifecycle.Base
	of *rescuer
}

func (t *target) Describe() lifecycle.Description {
	return lifecycle.Description{Kind: remediations.KindAPIServer, Own: own}
}

func (t *target) Guard(reason remediations.Reason, _ *lifecycle.Candidate) *lifecycle.Finding {
	return t.of.ownGuard(reason)
}

func (c *rescuer) ownGuard(reason remediations.Reason) *lifecycle.Finding {
	switch reason { //nolint:exhaustive // the general guards answer for all other reasons
	case remediations.ReasonPaused:
		return c.state.Journal.pausedBy(c.Now)
	case remediations.ReasonCooldown:
		return c.cooldown()
	case remediations.ReasonRepairsSpent:
		return c.repairsSpent()
	}
	return nil
}

// The file named paused has the form of drydock.dev/pause, or is a plain reason. Nil means that
// nothing is paused.
func (j RescueJournal) pausedBy(now time.Time) *lifecycle.Finding {
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
	return &lifecycle.Finding{Message: fmt.Sprintf("paused by the file named paused in the state directory%s; remove the file to continue", lifecycle.Aside(p.Why)), Until: p.Until}
}

func (c *rescuer) cooldown() *lifecycle.Finding {
	if c.Acted() {
		return nil
	}
	j := c.state.Journal
	for _, e := range j.Ended {
		if e.ID == j.Forgotten {
			return nil
		}
		if e.Policy != c.Policy.Name || len(e.Hosts) == 0 {
			continue
		}
		if over := e.Ended.Add(c.Policy.Cooldown); c.Now.Before(over) {
			return &lifecycle.Finding{Message: fmt.Sprintf("the last rescue by policy %s ended at %s; its cooldown is %s", e.Policy, e.Ended.Format(time.RFC3339), text.Duration(c.Policy.Cooldown)), Until: over}
		}
		return nil
	}
	return nil
}

// How many other rescues have restarted the host's kubelet within limits.repairsWindow, and when
// the first of these restarts was.
func (c *rescuer) begun(host string) (int, time.Time) {
	return c.state.Journal.begun(host, c.Own, c.Now, c.Config.Limits.RepairsWindow)
}

func (c *rescuer) spent(host string) bool {
	count, _ := c.begun(host)
	return count >= c.Config.Limits.RepairsPerNode
}

func (c *rescuer) repairsSpent() *lifecycle.Finding {
	if !c.spent(c.host) {
		return nil
	}
	l := c.Config.Limits
	count, oldest := c.begun(c.host)
	return &lifecycle.Finding{
		Message: fmt.Sprintf("%s restarted the kubelet of %s within %s, and the same holds for each other host whose API server fails; limits.repairsPerNode is %d; a person must check the hosts", text.Count(count, "rescue"), c.host, text.Duration(l.RepairsWindow), l.RepairsPerNode),
		Until:   oldest.Add(l.RepairsWindow),
	}
}

// MayStillRescue is the last check right before a call to a host. It returns an error if the
// journal or a person no longer allows the call.
func MayStillRescue(j RescueJournal, attempt string, now time.Time) error {
	r := j.Rescue
	switch {
	case j.Malformed != nil:
		return fmt.Errorf("the journal cannot be read any more: %w", j.Malformed)
	case r == nil || r.Phase != remediations.PhaseActing || r.last().Attempt != attempt:
		return fmt.Errorf("the intent %s is no longer on record", attempt)
	}
	if f := j.pausedBy(now); f != nil {
		return fmt.Errorf("the rescue was paused in the meantime: %s", f.Message)
	}
	return nil
}

// noNode finds nothing, because no Node can be read.
func noNode(string) *corev1.Node { return nil }
