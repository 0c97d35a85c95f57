package remediations

import (
	"fmt"
	"time"
)

// locationUnderRepair: repairs of nodes and of the leaders that they are, or are to be, exclude each other, and so do two of one
// location's leaders.
func locationUnderRepair(c *candidate) *finding {
	involved := []string{c.Node.Name}
	if r := c.record; r != nil {
		involved = append(involved, r.successors()...)
	}
	for _, n := range involved {
		if c.Fleet.nodeRepairOn(n) {
			return because("node %s is under repair", n)
		}
	}
	if why := c.Fleet.locationRepairIn(c.location, c.Node.Name); why != "" {
		return because("%s", why)
	}
	return nil
}

// movedLately: each move breaks the connections that the leader relays, so a location has one repair of its leader at most
// in limits.leaders.perLocation, whoever led then. Further attempts of one repair are not held by those before them.
func movedLately(c *candidate) *finding {
	what, least := "limits.leaders.perLocation is", c.Config.Limits.Locations.PerLocation
	if c.policy.Cooldown > least {
		what, least = "the policy's cooldown is", c.policy.Cooldown
	}
	last := c.Ledger.lastMove(c.location, c.own)
	if over := last.At.Add(least); !last.At.IsZero() && c.now.Before(over) {
		return &finding{message: fmt.Sprintf("repair %s moved the leadership of location %s at %s; %s %s", last.Repair, c.location, last.At.Format(time.RFC3339), what, least), until: over}
	}
	return nil
}

func locationsAtLimit(c *candidate) *finding {
	if why := c.Fleet.locationsAtLimit(c.Config, c.Node.Name, c.policy.Mode == ModeObserve); why != "" {
		return &finding{message: why}
	}
	return nil
}
