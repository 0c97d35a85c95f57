package ledger

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// WideApart is the shortest time between two repairs that change the whole cluster.
const WideApart = time.Hour

// widened records that the repair changed the whole cluster at that time. It stores only the last
// change of each repair.
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

// LastWide returns the last change of the whole cluster. It ignores the repair with the id except.
// It returns the zero value if there was none.
func (l *Ledger) LastWide(except string) (last Begun) {
	for _, b := range l.Wide {
		if b.Repair != except && b.At.After(last.At) {
			last = b
		}
	}
	return last
}

// rebuildWide adds the changes of the whole cluster on one Node's record to a ledger that Rebuild
// creates. For an ended repair it uses the end as the time of the change, because the time of its
// step is unknown.
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
