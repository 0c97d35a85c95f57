package engine

import (
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/coverage"
)

// maxContested bounds the other repair systems that the ledger names. maxContest bounds the text
// about each of them.
const (
	maxContested = 8
	maxContest   = 600
)

// contest is the result of the last search for other systems that repair the same Nodes: its time,
// and one text for each system.
type contest struct {
	at   time.Time
	says []string
	// of is the version of the set of Nodes that the search read. While it stays the same, the
	// Nodes show the same systems, and a new search of the Nodes is not needed.
	of int
}

// contested returns which other systems repair Nodes that a policy also repairs, one text for each.
// It searches at most once per coverageEvery, because no decision depends on the result.
func (p *pass) contested() []string {
	c := &p.contest
	of := p.roster.Identities()
	if c.at.IsZero() || ((of != c.of || p.Repairers != nil) && p.now.Sub(c.at).Abs() >= coverageEvery) {
		others := coverage.Managed()
		if p.Repairers != nil {
			others = append(p.Repairers(), others...)
		}
		c.at, c.of, c.says = p.now, of, nil
		for _, says := range coverage.Contested(p.Config, p.roster.Nodes(), others) {
			if len(c.says) < maxContested {
				c.says = append(c.says, text.Line(says, maxContest))
			}
		}
	}
	return c.says
}
