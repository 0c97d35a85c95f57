package engine

import (
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/coverage"
)

// These bound the other repair systems that the ledger names, and the text about each of them.
const (
	maxContested = 8
	maxContest   = 600
)

type contest struct {
	at   time.Time
	says []string
	// of is the version of the set of Nodes. While it is the same, no new search is needed.
	of int
}

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
