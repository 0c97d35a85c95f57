package ledger

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// WideApart is the shortest time between two repairs that change the whole cluster.
const WideApart = time.Hour

// widened stores only the last change of each repair.
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

// LastWide ignores the repair with the id except. It is zero if there was no change.
func (l *Ledger) LastWide(except string) (last Begun) {
	for _, b := range l.Wide {
		if b.Repair != except && b.At.After(last.At) {
			last = b
		}
	}
	return last
}

// rebuildWide uses the end of a repair as the time of its change, because that time is unknown.
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
