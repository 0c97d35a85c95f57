// Package rescue repairs the API servers themselves. It needs no API server. Its record is a
// journal on disk (package statefile), and it decides by that journal, by Alertmanager, and by the
// state of the hosts (package apiserver).
package rescue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/rescue/apiserver"
)

// ErrBusy: another restart of the unit already runs on the host, from this or another process.
var ErrBusy = errors.New("a restart of the unit runs on the host already")

// Hosts observes the control plane's hosts and restarts their kubelets.
type Hosts interface {
	// Sights queries every host's own /readyz at once, within 5 s. It does not fail: a host whose
	// state it cannot find out is Unknown.
	Sights(ctx context.Context) map[string]apiserver.HostSight
	// Restart restarts the kubelet of the host under the attempt's name. It calls mayStill right
	// before the command that changes something, and does not send the command if mayStill returns
	// an error. The outcome is never empty; the error says why it is not accepted, and is ErrBusy
	// if a restart already runs there. evidence is what the host reported about the unit before the
	// restart.
	Restart(ctx context.Context, host, attempt string, mayStill func() error) (outcome remediations.CallOutcome, evidence string, err error)
}

// Journal keeps the rescue's record on a disk, where no API server is needed.
type Journal interface {
	// Load returns the journal, and the present content of people's files.
	Load() (apiserver.RescueJournal, error)
	// Append makes the entries durable, all or none. After an error they may or may not be durable.
	Append(entries ...apiserver.RescueEntry) error
	// Renew sets an unreadable journal aside. Answered removes a person's reset file.
	Renew() error
	Answered() error
}

// HistoryWriter writes what was done without an API server into the histories of Nodes, once an API
// server answers again.
type HistoryWriter interface {
	// Write may be repeated: an entry that is already in the history is not an error. ErrNotFound:
	// there is no such Node.
	Write(ctx context.Context, node string, e remediations.Entry) error
}

// Options are all that the rescue needs; only History may be nil.
type Options struct {
	Config  *remediations.Config
	Hosts   Hosts
	Journal Journal
	Alerts  engine.AlertSource
	// History may be nil: then no history is written.
	History HistoryWriter
	Events  engine.Recorder
	Metrics prometheus.Registerer
	Clock   clock.WithTicker
	Log     logr.Logger
	// PollInterval is the time between two regular polls of Alertmanager.
	PollInterval time.Duration
	// CallTimeout bounds one call to a host. A call that takes longer than a minute counts as
	// perhaps done.
	CallTimeout time.Duration
	// NewID returns a fresh id.
	NewID func() string
}

// core holds the functions that a rescue decides by. Each rescue has its own core, so that a test
// can disable one clause of an invariant and check that the invariant's check fails:
// knockout_test.go.
type core struct {
	intentGood, lookLongest time.Duration
	decide                  func(*apiserver.State, time.Time) apiserver.Decision
	mayStill                func(j apiserver.RescueJournal, attempt string, now time.Time) error
}

func wholeCore() core {
	return core{intentGood: engine.IntentGood, lookLongest: engine.LookLongest, decide: apiserver.Decide, mayStill: apiserver.MayStillRescue}
}

// Rescue repairs the API servers themselves. It needs no API server: it runs in every replica, not
// only in the leader, and replicas exclude each other by the commands that run on the hosts. Like
// Engine it is one goroutine that owns all of its state.
type Rescue struct {
	Options
	core    core
	metrics engine.RepairMetrics
	notice  chan struct{}
	looks   chan *alerts.Snapshot
	seen    chan map[string]apiserver.HostSight
	calls   chan apiserver.RescueCall
	written chan apiserver.RescueInHistory

	looking, lookAgain bool
	seeing             bool
	// hung is held while a look at the hosts runs, even after its context has ended.
	hung sync.Mutex

	word   *alerts.Snapshot
	sights map[string]apiserver.HostSight
	call   *apiserver.RescueCall
	// trail is the call's trail.
	trail     engine.Trail
	wellSince time.Time
	lookSince time.Time
	newID     string
	// said is the content of people's files when they were last read.
	said    people
	emitted engine.Emitted
	// writing: a history is being written. wroteAt is when the last write began.
	writing bool
	wroteAt time.Time

	// received is when each alert was first and last received.
	received map[string]alertTimes

	mu     sync.Mutex
	posted map[string]remediations.Alert
}

// alertTimes is when an alert was first and last received.
type alertTimes struct{ first, last time.Time }

// people is the state of the files that people write into the state directory.
type people struct {
	paused    string
	isPaused  bool
	reset     bool
	malformed bool
}

const (
	// sightsFor bounds one look at the hosts.
	sightsFor = 8 * time.Second
	// historyFor bounds one write of a history, and historyEvery is how often one is tried.
	historyFor, historyEvery = 10 * time.Second, 30 * time.Second
	// graceful is how long a stopping rescue waits for the call under way.
	graceful = 5 * time.Second
	// postedFor is how long an alert is kept after its last post or poll, and postedMost how many
	// alerts are kept that only a post has brought.
	postedFor, postedMost = 10 * time.Minute, 16
)

// New makes a rescue.
func New(o Options) *Rescue {
	o.Events = engine.Logged(o.Events, o.Log)
	return &Rescue{
		Options: o, core: wholeCore(), metrics: engine.NewRepairMetrics(o.Metrics, o.Config), notice: make(chan struct{}, 1), looks: make(chan *alerts.Snapshot, 1),
		seen: make(chan map[string]apiserver.HostSight, 1), calls: make(chan apiserver.RescueCall, 16), written: make(chan apiserver.RescueInHistory, 1),
		emitted: engine.Emitted{}, received: map[string]alertTimes{}, posted: map[string]remediations.Alert{},
	}
}

// NeedLeaderElection returns false, so the manager starts the rescue in every replica: leadership
// depends on an API server.
func (r *Rescue) NeedLeaderElection() bool { return false }

// Notice reports that something may have changed. It never blocks.
func (r *Rescue) Notice() {
	select {
	case r.notice <- struct{}{}:
	default:
	}
}

// Receive accepts a posted alert about the API servers. It never blocks, and no action follows from
// a post alone.
func (r *Rescue) Receive(a remediations.Alert) {
	r.mu.Lock()
	if _, known := r.posted[a.Fingerprint]; known || len(r.posted) < postedMost {
		r.posted[a.Fingerprint] = a
	}
	r.mu.Unlock()
	r.Notice()
}

// Start runs until ctx ends.
func (r *Rescue) Start(ctx context.Context) error {
	r.Log.Info("watching over the API servers", "hosts", r.Config.ControlPlaneHosts)
	poll := r.Clock.NewTicker(r.PollInterval)
	defer poll.Stop()
	r.look(ctx)
	for {
		timer := r.Clock.NewTimer(r.pass(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			r.finish()
			return nil
		case <-r.notice:
			r.look(ctx)
		case l := <-r.looks:
			r.looking, r.word = false, l
			if r.lookAgain {
				r.look(ctx)
			}
		case s := <-r.seen:
			r.seeing, r.sights = false, s
		case <-poll.C():
			r.look(ctx)
		case c := <-r.calls:
			r.answered(c)
		case t := <-r.written:
			r.writing = false
			if t.ID != "" {
				r.append(apiserver.RescueEntry{InHistory: &t})
			}
		case <-timer.C():
		}
		timer.Stop()
	}
}

// look polls Alertmanager without waiting for the answer, as Engine does.
func (r *Rescue) look(ctx context.Context) {
	if r.looking {
		r.lookAgain = true
		return
	}
	r.looking, r.lookAgain = true, false
	askedAt, last := r.Clock.Now(), r.word
	go func() {
		r.looks <- &alerts.Snapshot{AskedAt: askedAt, Replicas: engine.LookWithin(ctx, r.Clock, r.Alerts, r.core.lookLongest, last)}
	}()
}

// see observes the hosts without waiting for the answer. A host that does not answer in time is
// Unknown.
func (r *Rescue) see(ctx context.Context) {
	if r.seeing {
		return
	}
	r.seeing = true
	askedAt := r.Clock.Now()
	go func() {
		ctx, cancel := context.WithTimeout(ctx, sightsFor)
		defer cancel()
		answer := make(chan map[string]apiserver.HostSight, 1)
		if r.hung.TryLock() { // a look that hangs must not be joined by others
			go func() {
				defer r.hung.Unlock()
				answer <- r.Hosts.Sights(ctx)
			}()
		}
		select {
		case saw := <-answer:
			r.seen <- r.sightsOf(saw, askedAt)
		case <-ctx.Done():
			r.seen <- r.sightsOf(nil, askedAt)
		}
	}()
}

// sightsOf keeps only the answers of the configured hosts.
func (r *Rescue) sightsOf(saw map[string]apiserver.HostSight, askedAt time.Time) map[string]apiserver.HostSight {
	out := make(map[string]apiserver.HostSight, len(r.Config.ControlPlaneHosts))
	for _, host := range r.Config.ControlPlaneHosts {
		s, there := saw[host]
		if !there || (s.State != apiserver.HostReady && s.State != apiserver.HostFailing) {
			s.State = apiserver.HostUnknown
		}
		if s.Why == "" {
			s.Why = "it did not answer"
		}
		s.Host, s.At = host, askedAt
		out[host] = s
	}
	return out
}

// answered keeps the result of a call until the journal has it.
func (r *Rescue) answered(c apiserver.RescueCall) {
	r.metrics.Called(rescueStep, c.Outcome)
	r.trail.Log(r.Log).Info("the host answered", "step", rescueStep, "outcome", c.Outcome, "why", c.Why)
	if r.call != nil && r.call.Attempt == c.Attempt {
		r.call = &c // a late answer to an earlier attempt does not concern the present one
	}
}

// finish waits briefly for the running call, so that its outcome is known after a restart.
func (r *Rescue) finish() {
	if r.call == nil || r.call.Outcome != "" {
		return
	}
	timer := r.Clock.NewTimer(graceful)
	defer timer.Stop()
	for r.call.Outcome == "" {
		select {
		case c := <-r.calls:
			r.answered(c)
		case <-timer.C():
			return
		}
	}
	if s, err := r.gather(); err == nil {
		if d := r.core.decide(s, r.Clock.Now()); d.Verb == lifecycle.VerbVerify {
			r.append(d.Write...)
		}
	}
}
