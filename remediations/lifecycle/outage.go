package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// WithoutLedger returns what holds repairs while the ledger cannot be read. If the failure is
// recent, the finding is nil: Drydock then only reads again.
func (s *State) WithoutLedger(now time.Time) (remediations.Reason, *Finding) {
	switch {
	case errors.Is(s.LedgerErr, ledger.ErrMalformed):
		return remediations.ReasonRecordMalformed, &Finding{Message: fmt.Sprintf("%v; correct the ledger, or delete it: Drydock then creates it again from the Nodes", s.LedgerErr), Fleetwide: true}
	case Lost(s.LedgerLost, now):
		return remediations.ReasonBlind, &Finding{Message: LedgerLost(s.LedgerLost, s.LedgerErr), Fleetwide: true}
	}
	return "", nil
}

// LedgerLost returns the message that the ledger has been unreachable since that time.
func LedgerLost(since time.Time, err error) string {
	return fmt.Sprintf("the ledger has been unreachable since %s (%s); without it Drydock begins no repair and no step", remediations.Instant(since).Format(time.RFC3339), text.Line(fmt.Sprint(err), 200))
}

// leasesLost returns nil if the failure is recent: Drydock then only lists the leases again.
func (s *State) leasesLost(now time.Time) *Finding {
	if !Lost(s.LeasesLost, now) {
		return nil
	}
	return &Finding{Message: LeasesLost(s.LeasesLost, s.LeasesErr), Fleetwide: true}
}

// LeasesLost returns the message that the leases could not be listed since that time.
func LeasesLost(since time.Time, err error) string {
	return fmt.Sprintf("Drydock has not been able to list the nodes' leases since %s (%s); without them it begins no repair and no step", remediations.Instant(since).Format(time.RFC3339), text.Line(fmt.Sprint(err), 200))
}

// LeaseLost returns the message that one node's lease could not be read since that time.
func LeaseLost(since time.Time, err error) string {
	return fmt.Sprintf("a node's lease has been unreadable since %s (%s); without it no cure is proven", remediations.Instant(since).Format(time.RFC3339), text.Line(fmt.Sprint(err), 200))
}

// Lost reports whether a failure has lasted long enough to hold repairs. A zero since means none.
func Lost(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= remediations.OutageFor
}
