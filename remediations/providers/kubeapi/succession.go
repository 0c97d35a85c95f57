package kubeapi

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
)

// Succession is the evidence of a set of machines for the replacement of one of them. Nothing links
// the new machine to the old one. So a younger machine of the same set proves the replacement, and
// only while the set is whole.
type Succession struct {
	// Set is its name, for people.
	Set string
	// Old describes the old machine if it is still listed, and how far its end is; empty: it is not
	// listed.
	Old string
	// ProviderID is the old machine's. Newest is when the youngest machine of the set was made,
	// before the request.
	ProviderID string
	Newest     time.Time
	// Seen is how many machines the set has last seen, Wanted how many it should have.
	Seen, Wanted int
}

// Member is a machine of the set.
type Member struct {
	ProviderID string
	Made       time.Time
	// Up: it has a Node of its own.
	Up bool
}

// Replacement returns what the set's machines prove.
func (s Succession) Replacement(members []Member) (r remediations.Replacement) {
	var lacks []string
	if s.Old != "" {
		lacks = append(lacks, s.Old)
	} else if len(members) < s.Seen {
		lacks = append(lacks, fmt.Sprintf("%s has seen %d Machines and %d are listed, so the list may lack the old one too", s.Set, s.Seen, len(members)))
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
		lacks = append(lacks, fmt.Sprintf("%s has %d Machines with a Node, and is to have %d", s.Set, up, s.Wanted))
	}
	if len(r.Successors) == 0 {
		lacks = append(lacks, s.Set+" has no new Machine with a Node")
	}
	r.Missing = strings.Join(lacks, "; ")
	return r
}
