package ledger

import (
	"time"

	"drydock.dev/drydock/remediations"
)

// Exports that only the tests need.

const (
	CancelsMost = cancelsMost
	KeyEnds     = keyEnds
	KeyGPUs     = keyGPUs
	KeyMoves    = keyMoves
	KeyOrphans  = keyOrphans
	KeyRepairs  = keyRepairs
	KeyVersion  = keyVersion
	KeyWide     = keyWide
	UnseenMost  = unseenMost
	FitBytes    = fitBytes
)

func (l *Ledger) Prune(c *remediations.Config, now time.Time) { l.prune(c, now) }
