package kube

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errNoNodes: Alertmanager posts again, and the poll brings what it gives up.
var errNoNodes = errors.New("no Node can be written: the API server does not answer, or Drydock has not read all Nodes yet")

// Door takes alerts for the Inbox that there is. There is none before the cache of Nodes is filled, and while the API server does
// not answer.
type Door struct{ inbox atomic.Pointer[Inbox] }

// Open has alerts written by the inbox from now on, Close by nobody.
func (d *Door) Open(i Inbox) { d.inbox.Store(&i) }
func (d *Door) Close()       { d.inbox.Store(nil) }

// Record is Inbox.Record. An error means that the alert must come again.
func (d *Door) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (string, error) {
	i := d.inbox.Load()
	if i == nil {
		return "", errNoNodes
	}
	return i.Record(ctx, labels, status, startsAt)
}
