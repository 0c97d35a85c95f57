package engine

import (
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/coverage"
)

// maxContested bounds how many other systems the ledger names, and maxContest what it says of one.
const (
	maxContested = 8
	maxContest   = 600
)

// contest is what was last said of other systems that repair the same Nodes.
type contest struct {
	at   time.Time
	says []string
	// of are the identities of the Nodes that were looked at: as long as they are the same, the Nodes show the same systems.
	of int
}

// contested says which other systems repair Nodes that a policy takes, too, once in a while and where something changed: no decision rests
// on it.
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
