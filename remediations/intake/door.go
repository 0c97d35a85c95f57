package intake

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errNoNodes: Alertmanager posts again, and the poll brings the alerts that Alertmanager no longer
// posts.
var errNoNodes = errors.New("no Node can be written: the API server does not answer, or Drydock has not read all Nodes yet")

// Door passes alerts to the present Intake. There is none before the cache of Nodes is filled,
// or while the API server does not answer.
type Door struct{ intake atomic.Pointer[Intake] }

// Open makes the intake write alerts from now on; after Close nothing writes them.
func (d *Door) Open(i Intake) { d.intake.Store(&i) }
func (d *Door) Close()        { d.intake.Store(nil) }

// Record is Intake.Record. An error means that the alert must come again.
func (d *Door) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (Result, error) {
	i := d.intake.Load()
	if i == nil {
		return "", errNoNodes
	}
	return i.Record(ctx, labels, status, startsAt)
}
