// Package rescue repairs the API servers themselves, also while no API server answers. It stores
// its record in a journal on disk (package statefile). Package apiserver decides by that journal,
// the answers of Alertmanager, and observations of the control-plane hosts.
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

// ErrBusy means that a restart of the kubelet's unit already runs on the host, from this process or
// another one.
var ErrBusy = errors.New("a restart of the unit already runs on the host")

// Hosts observes the control-plane hosts and restarts their kubelets.
type Hosts interface {
	// Sights queries the /readyz of every host at the same time, within 5 s. There is no error: a
	// host whose state cannot be found out is HostUnknown.
	Sights(ctx context.Context) map[string]apiserver.HostSight
	// Restart restarts the host's kubelet. attempt is part of the command's name on the host. It
	// calls mayStill right before it sends the command, and sends nothing after an error. outcome
	// is never empty; if it is not accepted, err has the reason. evidence is what the host reported
	// about the kubelet's unit before the restart.
	Restart(ctx context.Context, host, attempt string, mayStill func() error) (outcome remediations.CallOutcome, evidence string, err error)
}

// Journal stores the record of the rescue on a disk, so that no API server is needed.
type Journal interface {
	// Load returns the journal, and the files paused and reset, which people create.
	Load() (apiserver.RescueJournal, error)
	// Append makes all entries durable, or none. After an error it is unknown which.
	Append(entries ...apiserver.RescueEntry) error
	// Renew renames an unreadable journal and starts a new one. Answered removes the file reset.
	Renew() error
	Answered() error
}

// HistoryWriter writes ended rescues into the histories on Nodes, once an API server answers again.
type HistoryWriter interface {
	// Write adds the entry to the history on the Node. An entry that the history already has is not
	// an error. engine.ErrNotFound means that there is no such Node.
	Write(ctx context.Context, node string, e remediations.Entry) error
}

// Options has everything that the rescue needs. Only History may be nil.
type Options struct {
	Config  *remediations.Config
	Hosts   Hosts
	Journal Journal
	Alerts  engine.AlertSource
	// If it is nil, ended rescues are only in the journal.
	History      HistoryWriter
	Events       engine.Recorder
	Metrics      prometheus.Registerer
	Clock        clock.WithTicker
	Log          logr.Logger
	PollInterval time.Duration
	// If a call to a host takes longer than a minute, its outcome counts as unknown.
	CallTimeout time.Duration
	NewID       func() string
}

// Each Rescue has its own copy, so that knockout_test.go can disable one rule in one Rescue. That
// test then requires that another check fails.
type core struct {
	intentGood, lookLongest time.Duration
	decide                  func(*apiserver.State, time.Time) apiserver.Decision
	mayStill                func(j apiserver.RescueJournal, attempt string, now time.Time) error
}

func wholeCore() core {
	return core{intentGood: engine.IntentGood, lookLongest: engine.LookLongest, decide: apiserver.Decide, mayStill: apiserver.MayStillRescue}
}

// Rescue repairs the API servers themselves, also while none answers. It runs in every replica,
// because leader election needs an API server. The commands on the hosts prevent two replicas from
// restarting the same kubelet. One goroutine owns all of its state.
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
	// Locked while a query of the hosts runs, which may be after its context has ended.
	hung sync.Mutex

	word      *alerts.Snapshot
	sights    map[string]apiserver.HostSight
	call      *apiserver.RescueCall
	trail     engine.Trail
	wellSince time.Time
	lookSince time.Time
	newID     string
	said      people
	emitted   engine.Emitted
	// writing means that a history on a Node is being written. wroteAt is when that last began.
	writing bool
	wroteAt time.Time

	// By the alert's fingerprint.
	received map[string]alertTimes

	mu     sync.Mutex
	posted map[string]remediations.Alert
}

type alertTimes struct{ first, last time.Time }

// people has the state of the files paused and reset, and whether the journal is unreadable.
type people struct {
	paused    string
	isPaused  bool
	reset     bool
	malformed bool
}

const (
	// The timeout of one query of the hosts.
	sightsFor = 8 * time.Second
	// historyEvery is the shortest time between two writes of a history.
	historyFor, historyEvery = 10 * time.Second, 30 * time.Second
	// How long a process that stops waits for the call in progress.
	graceful = 5 * time.Second
	// How long an alert from a post is stored after its last arrival, and how many such alerts.
	postedFor, postedMost = 10 * time.Minute, 16
)

// New returns a Rescue. Start must be called to run it.
func New(o Options) *Rescue {
	o.Events = engine.Logged(o.Events, o.Log)
	return &Rescue{
		Options: o, core: wholeCore(), metrics: engine.NewRepairMetrics(o.Metrics, o.Config), notice: make(chan struct{}, 1), looks: make(chan *alerts.Snapshot, 1),
		seen: make(chan map[string]apiserver.HostSight, 1), calls: make(chan apiserver.RescueCall, 16), written: make(chan apiserver.RescueInHistory, 1),
		emitted: engine.Emitted{}, received: map[string]alertTimes{}, posted: map[string]remediations.Alert{},
	}
}

// NeedLeaderElection returns false, because leader election needs an API server.
func (r *Rescue) NeedLeaderElection() bool { return false }

// Notice requests a poll of Alertmanager soon. It never blocks.
func (r *Rescue) Notice() {
	select {
	case r.notice <- struct{}{}:
	default:
	}
}

// Receive stores a posted alert about the API servers. It never blocks. Nothing is restarted
// because of a post alone.
func (r *Rescue) Receive(a remediations.Alert) {
	r.mu.Lock()
	if _, known := r.posted[a.Fingerprint]; known || len(r.posted) < postedMost {
		r.posted[a.Fingerprint] = a
	}
	r.mu.Unlock()
	r.Notice()
}

// Start runs the rescue until ctx ends.
func (r *Rescue) Start(ctx context.Context) error {
	r.Log.Info("the rescue of the API servers watches their hosts", "hosts", r.Config.ControlPlaneHosts)
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

// A host that does not answer in time is HostUnknown.
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
		if r.hung.TryLock() { // while one query hangs, no other query may start
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

// One observation for each configured host; askedAt is when the query began.
func (r *Rescue) sightsOf(saw map[string]apiserver.HostSight, askedAt time.Time) map[string]apiserver.HostSight {
	out := make(map[string]apiserver.HostSight, len(r.Config.ControlPlaneHosts))
	for _, host := range r.Config.ControlPlaneHosts {
		s, there := saw[host]
		if !there || (s.State != apiserver.HostReady && s.State != apiserver.HostFailing) {
			s.State = apiserver.HostUnknown
		}
		if s.Why == "" {
			s.Why = "the host did not answer"
		}
		s.Host, s.At = host, askedAt
		out[host] = s
	}
	return out
}

// The result waits for the next decision, which writes it into the journal.
func (r *Rescue) answered(c apiserver.RescueCall) {
	r.metrics.Called(rescueStep, c.Outcome)
	r.trail.Log(r.Log).Info("the host answered", "step", rescueStep, "outcome", c.Outcome, "why", c.Why)
	if r.call != nil && r.call.Attempt == c.Attempt {
		r.call = &c // a late answer to an earlier attempt does not count
	}
}

// finish waits a short time for the call in progress, so that its outcome is known after a restart
// of Drydock.
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
