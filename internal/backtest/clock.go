package backtest

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"k8s.io/utils/clock"
)

// simulation is the simulated clock and the tasks that wait for it. A whole replay runs in one
// goroutine: work beside the engine's loop is a coroutine, which yields only where it sleeps. So
// the same past gives the same decisions.
type simulation struct {
	clock.WithTicker // nil: an engine that is driven by Step waits only by After
	now              time.Time
	ready, asleep    []*task
	running          *task
}

// task is one function that runs beside the engine's loop.
type task struct {
	wake  time.Time
	next  func() (time.Duration, bool)
	yield func(time.Duration) bool
}

func (s *simulation) Now() time.Time                  { return s.now }
func (s *simulation) Since(t time.Time) time.Duration { return s.now.Sub(t) }

// After makes the task sleep at once: the task reads the channel when it wakes.
func (s *simulation) After(d time.Duration) <-chan time.Time {
	out := make(chan time.Time, 1)
	s.sleep(d)
	out <- s.now
	return out
}

// beside starts a function beside the engine's loop.
func (s *simulation) beside(f func()) {
	t := &task{}
	t.next, _ = iter.Pull(func(yield func(time.Duration) bool) {
		t.yield = yield
		f()
	})
	s.ready = append(s.ready, t)
}

// work runs one task until it sleeps or ends. False: no task is ready.
func (s *simulation) work() bool {
	if len(s.ready) == 0 {
		return false
	}
	t := s.ready[0]
	s.ready = s.ready[1:]
	s.running = t
	d, more := t.next()
	s.running = nil
	if more {
		t.wake = s.now.Add(d)
		at, _ := slices.BinarySearchFunc(s.asleep, t.wake.Add(1), func(t *task, at time.Time) int { return t.wake.Compare(at) })
		s.asleep = slices.Insert(s.asleep, at, t)
	}
	return true
}

// sleep suspends the running task.
func (s *simulation) sleep(d time.Duration) {
	if s.running != nil {
		s.running.yield(max(0, d))
	}
}

// alarm returns when the next task wakes. Zero: none sleeps.
func (s *simulation) alarm() (at time.Time) {
	if len(s.asleep) > 0 {
		at = s.asleep[0].wake
	}
	return at
}

// wake readies the tasks whose time has come.
func (s *simulation) wakeUp() (any bool) {
	for len(s.asleep) > 0 && !s.asleep[0].wake.After(s.now) {
		s.ready, s.asleep, any = append(s.ready, s.asleep[0]), s.asleep[1:], true
	}
	return any
}

// earliest returns the first of the times that are not zero.
func earliest(all ...time.Time) (first time.Time) {
	for _, t := range all {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// later returns the last of the times.
func later(all ...time.Time) time.Time {
	return slices.MaxFunc(all, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
}
