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
}

// contested says which other systems repair Nodes that a policy takes, too, once in a while: no decision rests on it.
func (p *passing) contested() []string {
	c := &p.contest
	if c.at.IsZero() || p.now.Sub(c.at).Abs() >= coverageEvery {
		others := coverage.Managed()
		if p.Repairers != nil {
			others = append(p.Repairers(), others...)
		}
		c.at, c.says = p.now, nil
		for _, says := range coverage.Contested(p.Config, p.roster.Nodes(), others) {
			if len(c.says) < maxContested {
				c.says = append(c.says, text.Line(says, maxContest))
			}
		}
	}
	return c.says
}
