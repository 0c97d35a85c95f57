package remediations

import (
	"errors"
	"fmt"
	"time"
)

// withoutLedger says why nothing begins without the ledger; nil: it is read again at once.
func (s *State) withoutLedger(now time.Time) (Reason, *Finding) {
	switch {
	case errors.Is(s.LedgerErr, ErrLedgerMalformed):
		return RecordMalformed, &Finding{Message: fmt.Sprintf("%v; mend it, or delete it and it is made anew from the Nodes", s.LedgerErr), fleetwide: true}
	case Lost(s.LedgerLost, now):
		return Blind, &Finding{Message: LedgerLost(s.LedgerLost, s.LedgerErr), fleetwide: true}
	}
	return "", nil
}

// LedgerLost is what people are told of a ledger that could be neither read nor saved for some time.
func LedgerLost(since time.Time, err error) string {
	return fmt.Sprintf("the ledger is out of reach since %s (%s); nothing begins without it", Instant(since).Format(time.RFC3339), clip(fmt.Sprint(err), 200))
}

// leasesLost holds what cannot begin because nobody can list the leases; nil: they are listed at once.
func (s *State) leasesLost(now time.Time) *Finding {
	if !Lost(s.LeasesLost, now) {
		return nil
	}
	return &Finding{Message: fmt.Sprintf("the nodes' leases cannot be listed since %s (%s); nothing begins without them", Instant(s.LeasesLost).Format(time.RFC3339), clip(fmt.Sprint(s.LeasesErr), 200)), fleetwide: true}
}

// Lost says that what began to fail then has failed for long enough to hold repairs; a zero time: it does not fail.
func Lost(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= OutageFor }
