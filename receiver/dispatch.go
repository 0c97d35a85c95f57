package receiver

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"drydock.dev/drydock/remediations/intake"
)

type outcome struct {
	result   intake.Result
	err      error
	panicked bool
}

type tally struct {
	accepted int
	ignored  int
	failed   int   // usable, and not accepted; a repeated post may succeed
	panicked int   // how many of the failed alerts caused a panic
	firstErr error // the first error of the failed alerts
}

// dispatch passes the alerts to the Recorder, 16 at the same time, for at most timeouts.dispatch.
// An alert without a result then counts as failed, and does not stop the others. done is called
// when the Recorder has returned for every alert, which may be after dispatch itself.
func (s *Server) dispatch(ctx context.Context, alerts []alert, done func()) tally {
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.dispatch)
	outcomes := make(chan outcome, len(alerts)) // has room for all outcomes, so that no worker waits
	var next atomic.Int64
	finished := make(chan struct{})
	last := func() {
		done()
		close(finished)
		cancel()
	}
	workers := min(writesAtOnce, len(alerts))
	if workers == 0 {
		last()
	}
	var left atomic.Int64
	left.Store(int64(workers))
	for range workers {
		go func() {
			for i := next.Add(1) - 1; i < int64(len(alerts)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				outcomes <- s.record(ctx, alerts[i])
			}
			if left.Add(-1) == 0 {
				last()
			}
		}()
	}
	select {
	case <-finished:
	case <-ctx.Done():
	}
	return s.count(outcomes, len(alerts), ctx.Err())
}

// An alert whose outcome has not arrived counts as failed, with the error ended.
func (s *Server) count(outcomes <-chan outcome, expected int, ended error) tally {
	var t tally
	for range expected {
		select {
		case o := <-outcomes:
			t.add(o)
			if o.err == nil {
				s.metrics.alerts.WithLabelValues(string(o.result)).Inc()
			}
		default:
			t.add(outcome{err: fmt.Errorf("waiting until the alerts are written or queued: %w", ended)})
		}
	}
	return t
}

func (t *tally) add(o outcome) {
	switch {
	case o.err == nil && o.result.Taken():
		t.accepted++
	case o.err == nil:
		t.ignored++
	default:
		t.failed++
		if t.firstErr == nil {
			t.firstErr = o.err
		}
		if o.panicked {
			t.panicked++
		}
	}
}

// record recovers from panics itself, because net/http only recovers from panics in the request's
// own goroutine.
func (s *Server) record(ctx context.Context, alert alert) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("recording an alert: panic: %v", p)
			s.log.Error(err, "recording an alert panicked", "alert", alert.Labels["alertname"], "stack", string(debug.Stack()))
			o = outcome{err: err, panicked: true}
		}
	}()
	result, err := s.options.Recorder.Record(ctx, alert.Labels, alert.Status, alert.StartsAt)
	if err == nil && !result.Known() {
		// An unknown result must not be answered with 200, because Alertmanager would not send the alert
		// again.
		err = fmt.Errorf("recording an alert: the recorder gave the unknown result %q", result)
	}
	return outcome{result: result, err: err}
}
