package backtest

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// Options configure a replay.
type Options struct {
	Config       *remediations.Config
	Alertmanager *Routing
	BlindWhen    []labels.Matchers
	PollInterval time.Duration
	Cures        Cures
	// Resend is how often Prometheus sends a firing alert again. The Watchdog alert also arrives at
	// this interval, and Drydock needs it to prove a cure. 0 means Prometheus' default, one minute.
	Resend time.Duration
	// Curing makes each step cure its node after its usual time. Otherwise nodes recover when they did
	// in the past.
	Curing bool
}

// Replay is one replay of the past. Its caller feeds it the moments in order.
type Replay struct {
	*world
	engine      *engine.Engine
	intake      intake.Intake
	poll        time.Duration
	polled, due time.Time
	// After a gap in the data, nothing is decided before this time.
	notBefore time.Time
	gaps      []Gap
	passes    int
	// Called after each turn if not nil. Only tests set it.
	turned func()
}

// Gap is a period without data. Nothing is decided during it.
type Gap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// Enforced returns the configuration with mode enforce for every policy, because a backtest shows
// what Drydock would have done.
func Enforced(c *remediations.Config) *remediations.Config {
	out := *c
	out.Mode, out.Policies = remediations.ModeEnforce, nil
	for _, p := range c.Policies {
		p := *p
		if p.Mode == remediations.ModeObserve {
			p.Mode = remediations.ModeEnforce
		}
		out.Policies = append(out.Policies, &p)
	}
	return &out
}

// New starts a replay at the given time.
func New(o Options, from time.Time) *Replay {
	core := *o.Config
	core.SelfTest = nil // the self-test is about alerts now, not in the past
	w := &world{
		simulation: &simulation{now: from.UTC()}, config: &core, alerts: newAlertmanager(o.Alertmanager, &core, o.BlindWhen, o.Resend), ill: illWhen(&core),
		cures: o.Cures, curing: o.Curing, node: map[string]*node{}, touched: map[string]bool{}, about: map[string]*firing{}, story: newStory(&core),
	}
	r := &Replay{world: w, poll: o.PollInterval, polled: from.UTC(), due: from.UTC()}
	r.intake = intake.Intake{
		Config: &core, Writer: intake.Direct(w.patch), Now: w.Now,
		Node: func(name string) *corev1.Node {
			if n := w.node[name]; n != nil {
				return n.now
			}
			return nil
		},
	}
	ids := 0
	draw := rand.New(rand.NewPCG(0, 0)) //nolint:gosec // always the same seed, so that the same past gives the same decisions
	r.engine = engine.New(engine.Options{
		Config: &core, Fleet: w, Writer: w, Store: w, Alerts: w, Actuators: w.actuators(), Workers: map[string]engine.Worker{"drain": empties{w}},
		Witnesses: map[signs.Kind]engine.Witness{signs.DaemonSetPod: podSign{w}}, Events: w,
		Metrics: prometheus.NewRegistry(), Clock: w, Log: logr.Discard(), PollInterval: o.PollInterval, CallTimeout: time.Minute,
		NewID: func() string {
			ids++
			return strconv.FormatInt(36*36*36*36*36+int64(ids), 36)
		},
		NewTask: func() string { return "" }, Beside: w.beside, Below: draw.IntN,
		Adopt: r.intake.Adopt,
		Decided: func(node string, d lifecycle.Decision) {
			if w.story.decided(w.now, node, d); w.decided != nil {
				w.decided(node, d)
			}
		},
	})
	r.intake.Ended = r.engine.News
	return r
}

// Feed runs the replay up to the moment m and applies its changes.
func (r *Replay) Feed(ctx context.Context, m history.Moment) error {
	if err := r.Until(ctx, m.At); err != nil {
		return err
	}
	stirs := r.stirs(m)
	if stirs && r.idle() {
		r.awake(ctx, m.At)
	}
	r.now = m.At
	r.apply(m)
	if g := m.Gap; g != nil {
		r.gap(Gap{m.At.UTC(), g.Until.UTC(), g.Why})
		r.notBefore = g.Until
		r.story.releaseAll(m.At)
		return nil
	}
	if stirs || !r.idle() {
		r.turn(ctx)
	}
	return ctx.Err()
}

func (r *Replay) gap(g Gap) {
	if last := len(r.gaps) - 1; last >= 0 && r.gaps[last].Until.Equal(g.From) && r.gaps[last].Why == g.Why {
		r.gaps[last].Until = g.Until
		return
	}
	r.gaps = append(r.gaps, g)
}

// Until runs the replay to the time t. Feed must already have received all moments before t.
func (r *Replay) Until(ctx context.Context, t time.Time) error {
	for ctx.Err() == nil {
		at := r.next()
		if at.IsZero() || !at.Before(t) {
			return nil
		}
		r.now = at
		r.turn(ctx)
	}
	return ctx.Err()
}

// Finish ends the replay at the time t.
func (r *Replay) Finish(t time.Time) { r.story.finish(t) }

// idle reports that nothing changes before the next moment of the past.
func (r *Replay) idle() bool { return r.engine.Idle() && r.unready == 0 }

// The moment may need a decision: an alert begins to fire, a changed Node is not Ready, or a
// silence begins or ends.
func (r *Replay) stirs(m history.Moment) bool {
	for _, a := range m.Alerts {
		if a.EndsAt.IsZero() {
			return true
		}
	}
	for _, n := range m.Nodes {
		if !remediations.Ready(n) {
			return true
		}
	}
	return len(m.Silences) > 0
}

// The live engine would have made this pass. The replay skips regular passes while the engine is
// idle.
func (r *Replay) awake(ctx context.Context, t time.Time) {
	if last := r.grid(t); last.After(r.now) && last.Before(t) {
		r.now = last
		r.turn(ctx)
	}
}

func (r *Replay) grid(t time.Time) time.Time { return t.Truncate(r.poll) }

// A zero time means that nothing happens any more.
func (r *Replay) next() time.Time {
	var cure time.Time
	if len(r.coming) > 0 {
		cure = r.coming[0].at
	}
	at := earliest(r.alerts.due(), cure, r.alarm())
	if !r.idle() {
		at = earliest(at, r.due, r.polled)
	}
	if at.IsZero() {
		return at
	}
	return later(at, r.notBefore, r.now)
}

func (r *Replay) turn(ctx context.Context) {
	r.wakeUp()
	r.cure()
	r.alerts.post(r.now, func(f *firing, status string) {
		_, _ = r.intake.Record(ctx, f.labels, status, f.startsAt) // no error: patch returns none, and an unusable alert is not an error
	})
	poll := !r.now.Before(r.polled)
	if poll {
		r.polled = r.grid(r.now).Add(r.poll)
	}
	r.passes++
	r.due = r.now.Add(r.engine.Step(ctx, poll, r.work))
	if r.turned != nil {
		r.turned()
	}
}
