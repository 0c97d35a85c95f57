package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// WithoutLedger returns why nothing begins without the ledger; nil: the ledger is read again at
// once.
func (s *State) WithoutLedger(now time.Time) (remediations.Reason, *Finding) {
	switch {
	case errors.Is(s.LedgerErr, ledger.ErrMalformed):
		return remediations.ReasonRecordMalformed, &Finding{Message: fmt.Sprintf("%v; correct it, or delete it: Drydock makes it again from the Nodes", s.LedgerErr), Fleetwide: true}
	case Lost(s.LedgerLost, now):
		return remediations.ReasonBlind, &Finding{Message: LedgerLost(s.LedgerLost, s.LedgerErr), Fleetwide: true}
	}
	return "", nil
}

// LedgerLost returns the message about a ledger that could be neither read nor saved for some time.
func LedgerLost(since time.Time, err error) string {
	return fmt.Sprintf("the ledger has been unreachable since %s (%s); without it Drydock begins no repair and no step", remediations.Instant(since).Format(time.RFC3339), text.Line(fmt.Sprint(err), 200))
}

// leasesLost holds repairs that cannot begin because the leases cannot be listed; nil: they are
// listed at once.
func (s *State) leasesLost(now time.Time) *Finding {
	if !Lost(s.LeasesLost, now) {
		return nil
	}
	return &Finding{Message: LeasesLost(s.LeasesLost, s.LeasesErr), Fleetwide: true}
}

// LeasesLost returns the message about leases that could not be listed for some time.
func LeasesLost(since time.Time, err error) string {
	return fmt.Sprintf("Drydock has not been able to list the nodes' leases since %s (%s); without them it begins no repair and no step", remediations.Instant(since).Format(time.RFC3339), text.Line(fmt.Sprint(err), 200))
}

// LeaseLost returns the message about one node's lease that could not be read for some time.
func LeaseLost(since time.Time, err error) string {
	return fmt.Sprintf("a node's lease cannot be read since %s (%s); no cure is proven without it", remediations.Instant(since).Format(time.RFC3339), text.Line(fmt.Sprint(err), 200))
}

// Lost reports whether a failure since `since` has lasted long enough to hold repairs. Zero: no
// failure.
func Lost(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= remediations.OutageFor
}
