package location

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Guard has the guards that work differently for mesh locations.
func (s *target) Guard(reason remediations.Reason, c *lifecycle.Candidate) *lifecycle.Finding {
	switch reason {
	case remediations.ReasonNodeUnderRepair:
		return s.underRepair()
	case remediations.ReasonCooldown:
		return s.movedLately(c)
	case remediations.ReasonAtLimit:
		if why := s.Fleet.LocationsAtLimit(s.Config, s.Node.Name, c.Policy.Mode == remediations.ModeObserve); why != "" {
			return &lifecycle.Finding{Message: why}
		}
	default:
	}
	return nil
}

// underRepair holds the repair while a node that leads the location, or would lead it, is under
// repair, and while another repair moves the leadership.
func (s *target) underRepair() *lifecycle.Finding {
	involved := []string{s.Node.Name}
	if r := s.Record; r != nil {
		involved = append(involved, r.Successors()...)
	}
	for _, n := range involved {
		if s.Fleet.NodeRepairOn(n) {
			return lifecycle.Because("node %s is under repair", n)
		}
	}
	if why := s.Fleet.LocationRepairIn(s.Name, s.Node.Name); why != "" {
		return lifecycle.Because("%s", why)
	}
	return nil
}

// movedLately holds the repair if another one moved the leadership within
// limits.leaders.perLocation or the policy's cooldown. A repair of an earlier leader counts, too,
// because each move breaks the connections through the leader.
func (s *target) movedLately(c *lifecycle.Candidate) *lifecycle.Finding {
	what, least := "limits.leaders.perLocation is", s.Config.Limits.Locations.PerLocation
	if c.Policy.Cooldown > least {
		what, least = "the policy's cooldown is", c.Policy.Cooldown
	}
	last := s.Ledger.LastMove(s.Name, c.Own)
	if over := last.At.Add(least); c.Now.Before(over) { // a zero time: there was none
		return &lifecycle.Finding{Message: fmt.Sprintf("repair %s moved the leadership of location %s at %s; %s %s", last.Repair, s.Name, last.At.Format(time.RFC3339), what, text.Duration(least)), Until: over}
	}
	return nil
}

// UnprovenFor, with the policy's proofFor, is how long a repair waits for its proof when no further
// move is possible. It equals the default of limits.leaders.perLocation.
const UnprovenFor = 15 * time.Minute

// Unproven has the holds that leave nothing more to try: the alert has ended, or the probes report
// nothing, or they contradict the alert. All other holds end with time.
var Unproven = []remediations.Reason{remediations.ReasonAlertResolved, remediations.ReasonLeaderUnknown, remediations.ReasonLeaderHeld}

// Until is early for a repair that has moved the leadership and cannot prove its cure: it must not
// wait for a whole day.
func (s *target) Until(c *lifecycle.Candidate, pending *remediations.Record, reason remediations.Reason) time.Time {
	was := s.Record
	switch {
	case len(pending.Moves) == 0 || pending.Back != nil:
		return pending.Deadline
	case !slices.Contains(Unproven, reason):
		return remediations.Instant(pending.Since.Add(remediations.PendingFor))
	case was.Hold != nil && slices.Contains(Unproven, was.Hold.Reason):
		return was.Deadline // the hold has lasted since then, even if its message has changed
	}
	return remediations.Instant(remediations.Earlier(pending.Since.Add(remediations.PendingFor), c.Now.Add(UnprovenFor+c.Policy.ProofFor)))
}

// MayStillMove is the last check before the Nodes' annotations are written. leader is the Node with
// the repair's record. others are the next leader and every Node that changes.
func MayStillMove(c *remediations.Config, leader *corev1.Node, others []*corev1.Node, intentID string) error {
	r := c.Registry.ReadJournal(leader).Records[remediations.LocationKey]
	if r == nil || r.Phase != remediations.PhaseActing || r.Back != nil || r.Intent.ID != intentID {
		return remediations.Withhold(remediations.ReasonCallWithheld, "the intent %s is no longer on record", intentID)
	}
	for _, n := range others {
		if n.Name == r.Intent.Successor && n.Spec.Unschedulable {
			return remediations.Withhold(remediations.ReasonLeaderHeld, "node %s was cordoned in the meantime", n.Name)
		}
	}
	return letsMove(c, leader, others, r.Intent.At)
}

// MayStillPutBack is like MayStillMove, before moves are undone.
func MayStillPutBack(c *remediations.Config, leader *corev1.Node, others []*corev1.Node, putBackID string) error {
	r := c.Registry.ReadJournal(leader).Records[remediations.LocationKey]
	if r == nil || r.Phase != remediations.PhaseActing || r.Back == nil || r.PutBackID() != putBackID {
		return remediations.Withhold(remediations.ReasonCallWithheld, "the repair no longer undoes its moves")
	}
	return letsMove(c, leader, others, *r.Back)
}

func letsMove(c *remediations.Config, leader *corev1.Node, others []*corev1.Node, decided time.Time) error {
	for _, n := range append([]*corev1.Node{leader}, others...) {
		j := c.Registry.ReadJournal(n)
		if r := j.Record; r != nil && r.Phase.InFlight() {
			return remediations.Withhold(remediations.ReasonNodeUnderRepair, "node %s came under repair %s", n.Name, r.ID)
		}
		if err := lifecycle.LetsAct(c.HoldWhen, n, j, decided); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}
