package ledger

import (
	"time"

	"drydock.dev/drydock/remediations"
)

// What the tests of the ledger ask that nobody else does.

const (
	LedgerMoves     = ledgerMoves
	LedgerOrphans   = ledgerOrphans
	LedgerRepairs   = ledgerRepairs
	LedgerSlots     = ledgerSlots
	LedgerStatusKey = ledgerStatus
	LedgerVersion   = ledgerVersion
	LedgerWide      = ledgerWide
	UnseenMost      = unseenMost
)

func (l *Ledger) Prune(c *remediations.Config, now time.Time) { l.prune(c, now) }
