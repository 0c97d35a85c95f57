package kubeapi

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
)

// Succession can prove that a machine of a set was replaced. No field links the new machine to the
// old one: the set must have all its machines, and one must be younger than all machines from
// before the request.
type Succession struct {
	Set string
	// Old describes the old machine and the progress of its deletion. It is empty if the machine is
	// not listed.
	Old string
	// ProviderID is that of the old machine. Newest is the creation time of the set's youngest
	// machine, recorded before the request.
	ProviderID string
	Newest     time.Time
	// Seen is the number of machines in the last count of the set's controller.
	Seen, Wanted int
}

// Member is one of the set's present machines.
type Member struct {
	ProviderID string
	Made       time.Time
	// Up is true if the machine has a Node.
	Up bool
}

// Replacement returns what the set's present machines prove about the replacement, and what is
// still missing.
func (s Succession) Replacement(members []Member) (r remediations.Replacement) {
	var lacks []string
	if s.Old != "" {
		lacks = append(lacks, s.Old)
	} else if len(members) < s.Seen {
		lacks = append(lacks, fmt.Sprintf("%s counts %d Machines but %d are listed, so the list may also lack the old one", s.Set, s.Seen, len(members)))
	}
	r.MachineGone = len(lacks) == 0
	up := 0
	for _, one := range members {
		if !one.Up {
			continue
		}
		up++
		if one.Made.After(s.Newest) && one.ProviderID != s.ProviderID {
			r.Successors = append(r.Successors, one.ProviderID)
		}
	}
	if up < s.Wanted {
		lacks = append(lacks, fmt.Sprintf("%s has %d Machines with a Node, and should have %d", s.Set, up, s.Wanted))
	}
	if len(r.Successors) == 0 {
		lacks = append(lacks, s.Set+" has no new Machine with a Node")
	}
	r.Missing = strings.Join(lacks, "; ")
	return r
}
