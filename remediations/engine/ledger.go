package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"drydock.dev/drydock/remediations/ledger"
)

const conflictsMost = 5

// loadLedger reads the ledger. If there is none, it creates one from the records on the Nodes.
func (e *Engine) loadLedger(ctx context.Context) {
	if !e.ledgerOut.due(e.Clock.Now()) {
		return
	}
	data, version, err := e.Store.Load(ctx)
	if errors.Is(err, ErrNotFound) {
		l := ledger.Rebuild(e.Config, e.roster.Nodes(), e.Clock.Now())
		l.Arrival = e.connection.arrival
		if err := e.saveLedger(ctx, l, ""); err == nil {
			e.Log.Info("there was no ledger; it was created from the records on the Nodes", "slots", len(l.Slots))
		}
		return
	}
	if err != nil {
		e.ledgerOut.failed(e.Clock.Now(), err, outageLongest)
		e.ledgerErr = fmt.Errorf("reading the ledger: %w", err)
		e.ledger = nil
		return
	}
	e.compareLedger(version)
	if e.decoded == nil || !maps.Equal(data, e.stored) {
		l, err := ledger.Decode(data)
		if err != nil {
			e.ledger, e.ledgerErr, e.decoded = nil, err, nil
			return
		}
		e.decoded = l
		e.unknownFields(l.UnknownFields())
	}
	l := e.decoded.Clone()
	e.metrics.answered(sourceLedger, e.Clock.Now())
	e.ledger, e.ledgerErr, e.ledgerAt, e.statusSaved, e.ledgerRead, e.stored = l, nil, version, l.Status, e.Clock.Now(), data
	e.arrived(data, l)
}

// saveLedger forgets the ledger after any error: it is then unknown what is stored.
func (e *Engine) saveLedger(ctx context.Context, l *ledger.Ledger, version string) error {
	v, err := e.trySave(ctx, l, version)
	if err != nil {
		e.ledger, e.ledgerErr = nil, fmt.Errorf("saving the ledger: %w", err)
		e.conflicts++
		if raced := errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound); raced && e.conflicts < conflictsMost {
			e.again = true
		} else {
			e.ledgerOut.failed(e.Clock.Now(), err, outageLongest)
		}
		e.Log.Error(err, "the ledger could not be saved; it is read again")
		return err
	}
	e.ledgerOut.over()
	e.writesDone++
	e.conflicts, e.ledgerKnown = 0, v
	e.metrics.answered(sourceLedger, e.Clock.Now())
	e.ledger, e.ledgerErr, e.ledgerAt, e.statusSaved, e.ledgerRead, e.stored, e.decoded = l, nil, v, l.Status, e.Clock.Now(), l.Encode(), nil
	return nil
}

func (e *Engine) unknownFields(fields []string) {
	said := strings.Join(fields, ", ")
	if said != "" && said != e.fieldsSaid {
		e.Log.Error(nil, "the ledger has fields that this version of Drydock does not know; they are kept, and no decision uses them", "fields", said)
	}
	e.fieldsSaid = said
}
