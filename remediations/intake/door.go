package intake

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Alertmanager then repeats its post, and the leader's poll brings the alerts that it does not post
// again.
var errNoNodes = errors.New("no Node can be written: the API server does not answer, or Drydock has not read all Nodes yet")

// Door passes alerts to an Intake, once Open has set one: the cache of Nodes is filled, and the API
// server answers.
type Door struct{ intake atomic.Pointer[Intake] }

// Open sets the Intake that writes alerts from now on. After Close, Record returns an error.
func (d *Door) Open(i Intake) { d.intake.Store(&i) }
func (d *Door) Close()        { d.intake.Store(nil) }

// Record passes the alert to Intake.Record. An error means that the sender must send the alert
// again.
func (d *Door) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (Result, error) {
	i := d.intake.Load()
	if i == nil {
		return "", errNoNodes
	}
	return i.Record(ctx, labels, status, startsAt)
}
