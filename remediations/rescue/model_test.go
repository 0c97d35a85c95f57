package rescue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/rescue/apiserver"
	"drydock.dev/drydock/remediations/rescue/statefile"
)

// plane is a control plane whose API servers may all fail, with the Alertmanager that reports this
// and the Drydock replicas that watch it. At every restart it checks the invariants.
type plane struct {
	mu     sync.Mutex
	core   core
	dir    string
	config *remediations.Config
	hosts  map[string]*planeHost

	firing, silenced, inhibited, deaf bool
	// hangs means that a query of the hosts never returns.
	hangs bool

	guards    []*guard
	restarted []restarted
	events    []engine.Event
	history   map[string][]remediations.Entry
	apiBack   bool
	ids       int
	bad       string
	// dieAt is how many steps the first Drydock does before it dies. If it is negative, Drydock does
	// not die.
	dieAt, steps int
}

// planeHost is one host. If cures is set, a restart of its kubelet makes its API server work again.
type planeHost struct {
	up, cures, unknown bool
	// dead means that SSH does not connect. lies means that the host reports a restart that it did not
	// do. cut means that the host restarts the kubelet and its answer is lost. stuck means that the
	// host neither restarts the kubelet nor answers.
	dead, lies, cut, stuck bool
	busyUntil              time.Time
	// far is how long a call to the host takes.
	far time.Duration
	log []string
}

type restarted struct {
	host, attempt string
	at            time.Time
	by            *guard
}

// guard is one Drydock replica, with a state directory of its own.
type guard struct {
	p      *plane
	rescue *Rescue
	file   *statefile.File
	dir    string
	cancel func()
	done   chan struct{}
	dead   bool
	mortal bool
	// looked is when the replica last polled Alertmanager and learned that the alert is active and not
	// muted. saw is the last state of the hosts that it received.
	looked time.Time
	saw    map[string]apiserver.HostState
}

func rescueConfig() *remediations.Config {
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "apiserver-down")
	if err != nil {
		panic(err)
	}
	return &remediations.Config{
		Kinds: []*remediations.TargetKind{&apiserver.Kind},
		Mode:  remediations.ModeEnforce, MaxStaleness: 30 * time.Second, ControlPlaneHosts: []string{"cp-1", "cp-2", "cp-3"},
		Provided: map[string]bool{"restart-kubelet": true}, Limits: remediations.Limits{RepairsPerNode: 3, RepairsWindow: 24 * time.Hour},
		Policies: []*remediations.Policy{{
			Name: "apiserver-down", Match: labels.Matchers{m}, Kind: remediations.KindAPIServer, Mode: remediations.ModeEnforce, ProofFor: 30 * time.Second, Cooldown: 5 * time.Minute,
			Plan: []remediations.Step{{Name: "restart-kubelet", Wait: time.Minute, Attempts: 1, Timeout: 10 * time.Minute}},
		}},
	}
}

func onPlane(t *testing.T, f func(p *plane)) *plane {
	t.Helper()
	p := &plane{core: wholeCore(), dir: t.TempDir(), config: rescueConfig(), hosts: map[string]*planeHost{}, history: map[string][]remediations.Entry{}, dieAt: -1}
	for _, name := range p.config.ControlPlaneHosts {
		p.hosts[name] = &planeHost{up: true, cures: true}
	}
	soak.InBubble(t, func(*testing.T) {
		defer p.close()
		f(p)
	})
	return p
}

func (p *plane) do(f func()) { p.mu.Lock(); defer p.mu.Unlock(); f() }

func (p *plane) fail(format string, args ...any) {
	if p.bad == "" {
		p.bad = fmt.Sprintf(format, args...)
	}
}

// down stops all API servers, and the alert fires.
func (p *plane) down() {
	p.do(func() {
		for _, h := range p.hosts {
			h.up = false
		}
		p.firing = true
	})
}

// start starts a Drydock replica with the state directory of that name.
func (p *plane) start(name string, config *remediations.Config) *guard {
	g := &guard{p: p, dir: filepath.Join(p.dir, name), done: make(chan struct{}), saw: map[string]apiserver.HostState{}}
	file, err := statefile.Open(g.dir, clock.RealClock{})
	if err != nil {
		panic(err)
	}
	g.file = file
	p.do(func() { g.mortal = len(p.guards) == 0; p.guards = append(p.guards, g) })
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.rescue = New(Options{
		Config: config, Hosts: hostsOf{g}, Journal: journalOf{g}, Alerts: alertsOf{g}, History: historyOf{g}, Events: eventsOf{g}, Metrics: prometheus.NewRegistry(),
		Clock: clock.RealClock{}, Log: logr.Discard(), PollInterval: 15 * time.Second, CallTimeout: 45 * time.Second,
		NewID: func() string { p.mu.Lock(); defer p.mu.Unlock(); p.ids++; return fmt.Sprintf("r%05d", p.ids) },
	})
	g.rescue.core = p.core
	go func() {
		defer close(g.done)
		_ = g.rescue.Start(ctx)
	}()
	return g
}

// kill ends a replica like a power cut: it does nothing more, and its lock is free.
func (g *guard) kill() {
	g.p.do(func() { g.dead = true })
	g.cancel()
	<-g.done
	_ = g.file.Close()
}

func (p *plane) close() {
	for _, g := range p.guards {
		g.kill()
	}
	p.do(func() { p.hangs = false })
	time.Sleep(10 * time.Minute) // even a call that hangs ends
	synctest.Wait()
}

func (p *plane) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// step marks a moment at which the process may die. If it dies, step does not return.
func (g *guard) step() {
	g.p.mu.Lock()
	if g.mortal && !g.dead && g.p.dieAt >= 0 {
		if g.p.dieAt == g.p.steps {
			g.dead = true
			g.cancel()
		}
		g.p.steps++
	}
	dead := g.dead
	g.p.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
}

type alertsOf struct{ *guard }

func (a alertsOf) Look(context.Context) []alerts.Replica {
	a.step()
	time.Sleep(20 * time.Millisecond)
	p := a.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf {
		return []alerts.Replica{{URL: "am", Err: errors.New("connection refused")}}
	}
	r := alerts.Replica{URL: "am", Watchdog: true, Alerts: map[string]alerts.Alert{}}
	of := map[string]string{"alertname": "KubeAPIServerDown", "remediation": "apiserver-down"}
	if p.firing {
		w := alerts.Alert{Labels: of, StartsAt: time.Now().Add(-time.Minute), Active: !p.silenced && !p.inhibited}
		if p.silenced {
			w.SilencedBy = []string{"s1"}
		}
		if p.inhibited {
			w.InhibitedBy = []string{"i1"}
		}
		r.Alerts[remediations.Fingerprint(of)] = w
		if w.Active {
			a.looked = time.Now()
		}
	}
	return []alerts.Replica{r}
}

type hostsOf struct{ *guard }

func (h hostsOf) Sights(context.Context) map[string]apiserver.HostSight {
	h.step()
	time.Sleep(50 * time.Millisecond)
	for hangs := true; hangs; time.Sleep(time.Second) {
		h.p.do(func() { hangs = h.p.hangs })
	}
	p := h.p
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]apiserver.HostSight{"stranger": {Host: "stranger", State: apiserver.HostReady}}
	for name, host := range p.hosts {
		s := apiserver.HostSight{Host: name, State: apiserver.HostFailing, Why: "connection refused", At: time.Now().Add(time.Hour)}
		switch {
		case host.unknown:
			s.State, s.Why = apiserver.HostUnknown, "401"
		case host.up:
			s.State = apiserver.HostReady
		}
		out[name], h.saw[name] = s, s.State
	}
	return out
}

func (h hostsOf) Restart(ctx context.Context, host, attempt string, mayStill func() error) (remediations.CallOutcome, string, error) {
	h.step()
	p := h.p
	var of planeHost
	p.do(func() { of = *p.hosts[host] })
	time.Sleep(max(300*time.Millisecond, of.far)) // the time to reach the host
	switch {
	case of.dead:
		return remediations.CallRefused, "", errors.New("no route to host")
	case of.stuck:
		<-ctx.Done()
		return remediations.CallUnknown, "", ctx.Err()
	}
	if err := mayStill(); err != nil {
		return remediations.CallRefused, "", err
	}
	h.step()
	busy := false
	p.do(func() {
		real := p.hosts[host]
		if busy = real.busyUntil.After(time.Now()); busy { // the host's own systemd reports it
			return
		}
		p.check(h.guard, host, attempt)
		if real.busyUntil = time.Now().Add(55 * time.Second); of.lies {
			return
		}
		real.log = append(real.log, attempt)
		if real.cures {
			time.AfterFunc(8*time.Second, func() { p.do(func() { real.up = true }) })
		}
	})
	h.step()
	if busy {
		return remediations.CallRefused, "", ErrBusy
	}
	if of.cut {
		return remediations.CallUnknown, "", errors.New("connection reset")
	}
	return remediations.CallAccepted, "kubelet: bye", nil
}

// check asserts the invariants at the moment when a restart is sent.
func (p *plane) check(g *guard, host, attempt string) {
	now := time.Now()
	for _, r := range p.restarted {
		switch {
		case r.attempt == attempt:
			p.fail("4: the attempt %s was issued twice", attempt)
		case r.host == host && r.by.dir == g.dir && strings.HasPrefix(attempt, strings.SplitAfter(r.attempt, "-")[0]):
			p.fail("each host once in a rescue: %s by %s and %s", host, r.attempt, attempt)
		case r.host == host && now.Sub(r.at) < 50*time.Second:
			p.fail("%s was restarted twice in %s", host, now.Sub(r.at))
		}
	}
	p.restarted = append(p.restarted, restarted{host, attempt, now, g})
	if g.dead {
		p.fail("4: a Drydock that is dead restarted %s", host)
	}
	if now.Sub(g.looked) > 30*time.Second {
		p.fail("5: the alert was last confirmed %s ago", now.Sub(g.looked))
	}
	for name, s := range g.saw {
		if s == apiserver.HostReady {
			p.fail("%s is restarted while the API server of %s answers ready", host, name)
		}
	}
	if g.saw[host] != apiserver.HostFailing {
		p.fail("6: %s is restarted, and it is %s", host, g.saw[host])
	}
	if g.rescue.Config.Policies[0].Mode != remediations.ModeEnforce {
		p.fail("1: %s is restarted in observe mode", host)
	}
	if _, err := os.Stat(filepath.Join(g.dir, statefile.Paused)); err == nil {
		p.fail("9: %s is restarted while somebody has paused it", host)
	}
	text, err := os.ReadFile(filepath.Join(g.dir, statefile.Name))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; err != nil || !strings.Contains(last, `"phase":"Acting"`) || !strings.Contains(last, `"attempt":"`+attempt+`"`) {
		p.fail("4: the intent %s is not on the disk: %v", attempt, last)
	}
	j, err := g.file.Load()
	if err != nil || j.Rescue == nil {
		p.fail("4: the journal has no rescue")
		return
	}
	if t := j.Rescue.Hosts[len(j.Rescue.Hosts)-1]; now.Sub(t.At) > 11*time.Second {
		p.fail("4: the intent is %s old", now.Sub(t.At))
	}
	begun := map[string]bool{}
	for _, e := range j.Ended {
		for _, t := range e.Hosts {
			if t.Host == host && t.Outcome != remediations.CallRefused && e.ID != j.Rescue.ID && now.Sub(t.At) < 24*time.Hour {
				begun[e.ID] = true
			}
		}
	}
	if !slices.ContainsFunc(p.restarted, func(r restarted) bool { return r.attempt == "reset" }) && len(begun) >= 3 {
		p.fail("3: %s is restarted by a fourth rescue", host)
	}
}

type journalOf struct{ *guard }

func (j journalOf) Load() (apiserver.RescueJournal, error) { j.step(); return j.file.Load() }

func (j journalOf) Append(entries ...apiserver.RescueEntry) error {
	j.step()
	err := j.file.Append(entries...)
	j.step()
	return err
}

func (j journalOf) Renew() error    { j.step(); return j.file.Renew() }
func (j journalOf) Answered() error { j.step(); return j.file.Answered() }

type historyOf struct{ *guard }

func (h historyOf) Write(_ context.Context, node string, e remediations.Entry) error {
	h.step()
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	switch {
	case !h.p.apiBack:
		return errors.New("connection refused")
	case node == "cp-3":
		return engine.ErrNotFound
	case !slices.ContainsFunc(h.p.history[node], func(o remediations.Entry) bool { return o.ID == e.ID }):
		h.p.history[node] = append(h.p.history[node], e)
	}
	return nil
}

type eventsOf struct{ *guard }

func (e eventsOf) Event(_ string, ev engine.Event) {
	e.p.do(func() { e.p.events = append(e.p.events, ev) })
}

// journal returns the content of the state directory after its Drydock has ended.
func (p *plane) journal(t require.TestingT, name string) apiserver.RescueJournal {
	f, err := statefile.Open(filepath.Join(p.dir, name), clock.RealClock{})
	require.NoError(t, err)
	defer f.Close()
	j, err := f.Load()
	require.NoError(t, err)
	require.NoError(t, j.Malformed)
	return j
}

func (p *plane) outcomes(t require.TestingT, name string) (out []remediations.Outcome) {
	for _, e := range slices.Backward(p.journal(t, name).Ended) {
		out = append(out, e.Outcome)
	}
	return out
}

// logs returns the hosts' own logs.
func (p *plane) logs() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.config.ControlPlaneHosts {
		for _, attempt := range p.hosts[name].log {
			out = append(out, name+" "+attempt)
		}
	}
	return out
}

// requireClaims requires that the hosts' logs have exactly the restarts that the records claim. A
// restart with an unknown outcome may be missing.
func (p *plane) requireClaims(t require.TestingT, names ...string) {
	sure, perhaps := map[string]bool{}, map[string]bool{}
	claim := func(tries []apiserver.HostTry) {
		for _, try := range tries {
			switch key := try.Host + " " + try.Attempt; try.Outcome {
			case remediations.CallAccepted:
				sure[key] = true
			case remediations.CallUnknown, "":
				perhaps[key] = true
			case remediations.CallRefused:
			}
		}
	}
	for _, name := range names {
		j := p.journal(t, name)
		for _, e := range j.Ended {
			claim(e.Hosts)
		}
		if j.Rescue != nil {
			claim(j.Rescue.Hosts)
		}
	}
	logs := p.logs()
	for _, l := range logs {
		require.True(t, sure[l] || perhaps[l], "%s is on no record", l)
	}
	for key := range sure {
		host, _, _ := strings.Cut(key, " ")
		require.True(t, slices.Contains(logs, key) || p.hosts[host].lies, "%s is claimed, and was not", key)
	}
}
