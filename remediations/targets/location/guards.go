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

// Guard returns what holds locations alone, beside the guards for every target.
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

// underRepair holds the candidate while a node is under repair that leads the location or is to
// lead it, and while another repair of the location's leader is under way. These exclude each
// other.
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

// movedLately allows one repair of a location's leader per limits.leaders.perLocation, even if the
// leader changed, because each move breaks the connections that the leader relays. Earlier attempts
// of one repair do not hold its further attempts.
func (s *target) movedLately(c *lifecycle.Candidate) *lifecycle.Finding {
	what, least := "limits.leaders.perLocation is", s.Config.Limits.Locations.PerLocation
	if c.Policy.Cooldown > least {
		what, least = "the policy's cooldown is", c.Policy.Cooldown
	}
	last := s.Ledger.LastMove(s.Name, c.Own)
	if over := last.At.Add(least); !last.At.IsZero() && c.Now.Before(over) {
		return &lifecycle.Finding{Message: fmt.Sprintf("repair %s moved the leadership of location %s at %s; %s %s", last.Repair, s.Name, last.At.Format(time.RFC3339), what, text.Duration(least)), Until: over}
	}
	return nil
}

// UnprovenFor bounds, in addition to proofFor, how long a repair that has moved waits for its proof
// when nothing more can be done. It equals the default wait between two repairs of a location.
const UnprovenFor = 15 * time.Minute

// Unproven are the reasons of holds that no person set, and that leave nothing to try after a move.
// The alert has ended, or the probes report nothing, or they contradict the alert. All other holds
// end with time.
var Unproven = []remediations.Reason{remediations.ReasonAlertResolved, remediations.ReasonLeaderUnknown, remediations.ReasonLeaderHeld}

// Until returns until when the candidate may be held. A repair that has moved and cannot prove its
// Cure must not wait for a day.
func (s *target) Until(c *lifecycle.Candidate, pending *remediations.Record, reason remediations.Reason) time.Time {
	was := s.Record
	switch {
	case len(pending.Moves) == 0 || pending.Back != nil:
		return pending.Deadline
	case !slices.Contains(Unproven, reason):
		return remediations.Instant(pending.Since.Add(remediations.PendingFor))
	case was.Phase == remediations.PhasePending && was.Hold != nil && slices.Contains(Unproven, was.Hold.Reason):
		return was.Deadline // its hold began then, even if the message has changed
	}
	return remediations.Instant(remediations.Earlier(pending.Since.Add(remediations.PendingFor), c.Now.Add(UnprovenFor+c.Policy.ProofFor)))
}

// MayStillMove checks, right before the keys are written, whether the Nodes still say what the
// decision depended on. leader is the node with the record. others are the successor and every node
// whose key changes.
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

// MayStillPutBack is MayStillMove for undoing the moves of the repair.
func MayStillPutBack(c *remediations.Config, leader *corev1.Node, others []*corev1.Node, putBackID string) error {
	r := c.Registry.ReadJournal(leader).Records[remediations.LocationKey]
	if r == nil || r.Phase != remediations.PhaseActing || r.Back == nil || r.PutBackID() != putBackID {
		return remediations.Withhold(remediations.ReasonCallWithheld, "nothing is to be put back any more")
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
