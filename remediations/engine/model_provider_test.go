package engine

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
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

func (l ledgerPort) Save(ctx context.Context, data map[string]string, version string) (string, error) {
	fatal := l.enter("save "+strings.Join(slotsOf(data), ","), true)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	fault := l.fault("save")
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case fault == "lost":
		return "", errLost
	case l.w.ledger == nil && version != "":
		return "", ErrNotFound
	case fault == "conflict" || (l.w.ledger != nil && version != strconv.Itoa(l.w.ledgerRV)):
		return "", ErrConflict
	}
	l.w.ledger = maps.Clone(data)
	l.w.ledgerRV++
	l.w.checkState()
	l.leave(fatal)
	if fault == "written" {
		return "", errLost
	}
	return strconv.Itoa(l.w.ledgerRV), nil
}

func slotsOf(data map[string]string) []string {
	l, err := remediations.DecodeLedger(data)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, s := range l.Slots {
		out = append(out, s.Attempt)
	}
	return out
}

// rebooter is the provider, in whatever mood it is.
type rebooter struct{ *instance }

// Act is the provider. A call that outlives its process was sent or was not; what it did stays done.
func (r rebooter) Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	fatal := r.enter("act "+m.Node, true)
	r.w.mu.Lock()
	mood := r.w.mood
	r.w.mu.Unlock()
	time.Sleep(mood.before)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.dead {
		runtime.Goexit()
	}
	if mood.refuse {
		return remediations.CallRefused, errors.New("no quota")
	}
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	r.w.checkCall(r.instance, m)
	r.w.reboot(m.Node)
	if fatal {
		r.dead = true
	}
	r.w.mu.Unlock()
	if mood.after > 0 {
		select {
		case <-time.After(mood.after):
		case <-ctx.Done():
			mood.cut = true
		}
	}
	r.w.mu.Lock()
	if r.dead {
		runtime.Goexit()
	}
	if mood.cut {
		return remediations.CallUnknown, errors.New("connection reset")
	}
	return remediations.CallAccepted, nil
}
