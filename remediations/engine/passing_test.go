package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// unread is a provider whose reads fail, at so many of its calls, before it asks mayStill or after that.
type unread struct {
	provider
	err   error
	times int
	asks  bool
	began *[]time.Time
}

func (u unread) Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	n := at(u.w, func() int { *u.began = append(*u.began, time.Now()); return len(*u.began) })
	if n > u.times {
		return u.provider.Act(ctx, m, mayStill)
	}
	if u.asks {
		if err := mayStill(); err != nil {
			return remediations.CallRefused, err
		}
	}
	return remediations.CallRefused, fmt.Errorf("reading node %s: %w", m.Node, u.err)
}

// TestWhatCouldNotBeReadIsReadAgain, within the same attempt and only while nothing was done and the intent is young.
func TestWhatCouldNotBeReadIsReadAgain(t *testing.T) {
	no := errors.New("no such machine")
	for name, c := range map[string]struct {
		err   error
		times int
		asks  bool
		// calls are those of the provider while the first attempt lasts, first what became of that attempt.
		calls int
		first remediations.CallOutcome
	}{
		"two reads fail":            {ErrPassing, 2, false, 3, remediations.CallAccepted},
		"all reads fail":            {ErrPassing, 1000, false, 10, remediations.CallRefused},
		"it will not pass":          {no, 1, false, 1, remediations.CallRefused},
		"mayStill was asked before": {ErrPassing, 1, true, 1, remediations.CallRefused},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				i := w.start()
				w.pass(16 * time.Second)
				var began []time.Time
				i.engine.Actuators[""]["reboot"] = unread{provider{i, "reboot"}, c.err, c.times, c.asks, &began}
				w.do(func() { w.ail("n0", 9) })
				var intent *remediations.Intent
				for range 120 {
					w.pass(time.Second)
					if r := w.recordOf("n0"); r != nil && r.Intent != nil && r.Intent.Outcome != "" {
						intent = r.Intent
						break
					}
				}
				require.NotNil(t, intent)
				require.Equal(t, c.first, intent.Outcome)
				require.Equal(t, 1, w.recordOf("n0").Step.Attempt)
				require.InDelta(t, c.calls, len(began), 1, "%v", began)
				if c.calls < 5 {
					require.Len(t, began, c.calls)
				}
				require.Less(t, began[len(began)-1].Sub(intent.At), intentGood+time.Second)
				if c.first == remediations.CallAccepted {
					require.Len(t, w.calls, 1)
				} else {
					require.Empty(t, w.calls)
				}
			})
		})
	}
}

// TestAReplicaThatStopsReadsNothingAgain: another one leads by then.
func TestAReplicaThatStopsReadsNothingAgain(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(16 * time.Second)
		var began []time.Time
		i.engine.Actuators[""]["reboot"] = unread{provider{i, "reboot"}, ErrPassing, 1000, false, &began}
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(2*time.Minute, func() bool { return len(began) == 2 }))
		w.do(func() { i.cancel() })
		w.pass(time.Minute)
		require.Len(t, began, 2)
	})
}
