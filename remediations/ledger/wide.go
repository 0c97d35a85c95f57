package ledger

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// WideApart is the least time between two repairs that change the whole cluster.
const WideApart = time.Hour

// widened counts a repair that changes the whole cluster. Of each repair it keeps the last time.
func (l *Ledger) widened(repair string, when time.Time) {
	next := Begun{Repair: repair, At: when}
	l.Wide = slices.DeleteFunc(l.Wide, func(b Begun) bool {
		if b.Repair == repair {
			next.Unknown = b.Unknown
		}
		return b.Repair == repair
	})
	l.Wide = append(l.Wide, next)
}

// LastWide returns when a repair other than except last changed the whole cluster.
func (l *Ledger) LastWide(except string) (last Begun) {
	for _, b := range l.Wide {
		if b.Repair != except && b.At.After(last.At) {
			last = b
		}
	}
	return last
}

// rebuildWide is the part of Rebuild about the whole cluster. An ended repair counts from its end,
// because the time of its step is unknown.
func (l *Ledger) rebuildWide(c *remediations.Config, j remediations.Journal) {
	wide := func(done remediations.Attempt) bool { return c.Remediation(done.Name).ClusterWide }
	for _, e := range j.Whole() {
		if slices.ContainsFunc(e.Steps, wide) {
			l.widened(e.ID, e.Ended)
		}
	}
	if r := j.Record; r != nil && r.Intent != nil && slices.ContainsFunc(r.Done, wide) {
		l.widened(r.ID, r.Intent.At)
	}
}
