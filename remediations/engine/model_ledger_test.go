package engine

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/remediations/ledger"
)

// ledgerPort is the ledger's ConfigMap, which only a compare-and-swap changes.
type ledgerPort struct{ *instance }

func (l ledgerPort) Load(context.Context) (map[string]string, string, error) {
	l.enter("load", false)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	switch {
	case l.fault("load") != "":
		return nil, "", errLost
	case l.w.ledger == nil:
		return nil, "", ErrNotFound
	}
	return maps.Clone(l.w.ledger), strconv.Itoa(l.w.ledgerRV), nil
}

// errTooLong is the API server's error for a ConfigMap of more than 1 MiB.
var errTooLong = errors.New("ConfigMap is invalid: []: Too long: may not be more than 1048576 bytes")

func tooLong(data map[string]string) bool {
	size := 0
	for _, value := range data {
		size += len(value)
	}
	return size > 1<<20
}

func (l ledgerPort) Save(ctx context.Context, data map[string]string, version string) (string, error) {
	fatal := l.enter("save "+strings.Join(slotsOf(data), ","), true)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	fault := l.fault("save")
	conflict := l.w.ledger != nil && version != strconv.Itoa(l.w.ledgerRV) && !l.w.lies.ignoreLedgerVersion
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case fault == "lost":
		return "", errLost
	case tooLong(data), l.w.refusesGPUs && data["gpus"] != "":
		return "", errTooLong
	case l.w.ledger == nil && version != "":
		return "", ErrNotFound
	case fault == "conflict" || conflict:
		return "", ErrConflict
	}
	if l.w.lies.forgetGPUs {
		data = maps.Clone(data)
		delete(data, "gpus")
	}
	l.w.checkStops(data)
	l.w.checkGPUsKept(data)
	l.w.ledgerRV++
	slots := l.w.ledger["slots"]
	l.w.ledger = maps.Clone(data)
	if kept, err := ledger.Decode(data); l.w.lies.keepSlots && err == nil && len(kept.Slots) == 0 && slots != "" {
		l.w.ledger["slots"] = slots
	}
	if l.w.lies.forgetSlots {
		l.w.ledger["slots"] = "[]"
	}
	if l.w.lies.forgetOrphans {
		l.w.ledger["orphans"] = "[]"
	}
	l.leave(fatal)
	if fault == "written" {
		return "", errLost
	}
	return strconv.Itoa(l.w.ledgerRV), nil
}

// arrive is a replica's PATCH: it ignores the version, and creates no ledger.
func (w *world) arrive(at time.Time) {
	if w.ledger == nil {
		return
	}
	w.ledgerRV++
	w.ledger = maps.Clone(w.ledger)
	w.ledger[ledger.KeyArrival] = ledger.EncodeArrival(at)
}

func slotsOf(data map[string]string) []string {
	l, err := ledger.Decode(data)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, s := range l.Slots {
		out = append(out, s.Attempt)
	}
	return out
}
