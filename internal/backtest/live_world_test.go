package backtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// live is a cluster with a live Drydock, in the time of a bubble. Its world is not the replay's:
// its Alertmanager groups by timers, its kubelets renew leases, its steps cure or not. It records
// what happens as a Prometheus would.
type live struct {
	t      testing.TB
	engine *engine.Engine
	intake intake.Intake
	config *remediations.Config

	mu       sync.Mutex
	version  int
	nodes    map[string]*corev1.Node
	silent   map[string]time.Time // by node, since when its lease is not renewed
	cordoned map[string]bool      // by Drydock
	takes    time.Duration        // a write of the engine's
	ledger   map[string]string

	firing   map[string]alerts.Alert // by fingerprint
	silenced map[string]bool         // by node
	// unanswered: no Alertmanager answers; the only key is empty.
	unanswered map[string]bool
	// curable are the nodes that a reboot cures.
	curable map[string]bool

	// refuses: the provider refuses each call; trouble is what it finds against each step; noReset:
	// exhausted repairs are not reset.
	refuses, noReset bool
	trouble          string
	// drains is how long a drain takes, says what a sign says that the Node does not show.
	drains time.Duration
	says   signs.Answer

	recorded past
	calls    []call
	holds    timeline
	// cordonedAt is when Drydock cordoned each node, curedAt when steps cured nodes, silences are
	// those that were, by node.
	cordonedAt map[string][]time.Time
	curedAt    []time.Time
	silences   map[string][]span
}

// call is one call of the provider.
type call struct {
	node, step string
	at         time.Time
}

func newLive(t testing.TB, c *remediations.Config, poll time.Duration, nodes ...*corev1.Node) *live {
	return newLiveWith(t, c, poll, func(*live, *engine.Options) {}, nodes...)
}

// newLiveWith is newLive with a change.
func newLiveWith(t testing.TB, c *remediations.Config, poll time.Duration, change func(*live, *engine.Options), nodes ...*corev1.Node) *live {
	l := &live{
		t: t, config: c, nodes: map[string]*corev1.Node{}, silent: map[string]time.Time{}, cordoned: map[string]bool{},
		firing: map[string]alerts.Alert{}, silenced: map[string]bool{}, unanswered: map[string]bool{}, curable: map[string]bool{}, recorded: past{},
		cordonedAt: map[string][]time.Time{}, silences: map[string][]span{}, holds: timeline{},
	}
	for _, n := range nodes {
		l.put(n)
	}
	ids := 36 * 36 * 36 * 36 * 36
	o := engine.Options{
		Config: c, Fleet: l, Writer: l, Store: l, Alerts: l, Actuators: map[string]map[string]engine.Actuator{"civo": {"reboot": l}},
		Events: l, Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Log: logr.Discard(), PollInterval: poll,
		CallTimeout: time.Minute, NewTask: func() string { return "" },
		NewID:   func() string { ids++; return strconv.FormatInt(int64(ids), 36) },
		Decided: func(node string, d lifecycle.Decision) { l.holds.decided(time.Now(), node, d) },
	}
	o.Adopt = intake.Intake{Writer: intake.Direct(l.patch), Now: time.Now}.Adopt
	change(l, &o)
	l.engine = engine.New(o)
	l.intake = intake.Intake{Config: l.config, Now: time.Now, Ended: l.engine.News, Expected: l.engine.Expect, Writer: intake.Direct(l.patch), Node: l.node}
	return l
}

// at has something happen at that time.
func (l *live) at(t time.Time, f func()) { time.AfterFunc(time.Until(t), f) }

// put makes the Node what the API server has, and records what kube-state-metrics would have
// exported of it.
func (l *live) put(n *corev1.Node) *corev1.Node {
	l.version++
	n.ResourceVersion = strconv.Itoa(l.version)
	was := l.nodes[n.Name]
	l.nodes[n.Name] = n
	seen := n.DeepCopy()
	seen.Annotations, seen.Labels, seen.Status.NodeInfo.BootID, seen.Status.Allocatable = nil, exported(n), "", nil
	if was == nil || !maps.Equal(exported(was), exported(n)) || was.Spec.Unschedulable != n.Spec.Unschedulable ||
		was.Status.Conditions[0] != n.Status.Conditions[0] {
		m := l.recorded.at(time.Now())
		m.Nodes = append(slices.DeleteFunc(m.Nodes, func(old *corev1.Node) bool { return old.Name == n.Name }), seen)
	}
	if l.engine != nil {
		l.engine.Notice()
	}
	return n
}

// exported returns the labels that kube-state-metrics exports: roles always, and the configured
// others.
func exported(n *corev1.Node) map[string]string {
	out := maps.Clone(n.Labels)
	maps.DeleteFunc(out, func(name, _ string) bool {
		return !strings.HasPrefix(name, "node-role.kubernetes.io/") && name != signs.GPUCountLabel
	})
	return out
}

// edit changes a Node.
func (l *live) edit(name string, change func(*corev1.Node)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[name].DeepCopy()
	change(n)
	l.put(n)
}

// ail makes the node ill at that time: its Ready condition has that status, which is Unknown where
// its kubelet fell silent before. The alert fires after five minutes.
func (l *live) ail(name string, status corev1.ConditionStatus, from time.Time) {
	if status == corev1.ConditionUnknown {
		l.at(from.Add(-leaseFor), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.silent[name] = time.Now()
		})
	}
	l.at(from, func() {
		l.edit(name, func(n *corev1.Node) {
			n.Status.Conditions = nodeAt(name, status, time.Now()).Status.Conditions
		})
	})
	l.at(from.Add(5*time.Minute), func() {
		if n := l.node(name); !remediations.Ready(n) && remediations.ReadyCondition(n).LastTransitionTime.Time.Equal(from) {
			l.alert(name)
		}
	})
}

// heal makes the node well now. Its alert ends after a minute.
func (l *live) heal(name string) {
	l.mu.Lock()
	delete(l.silent, name)
	ill := !remediations.Ready(l.nodes[name])
	l.mu.Unlock()
	if !ill {
		return
	}
	l.edit(name, func(n *corev1.Node) {
		n.Status.Conditions = nodeAt(name, corev1.ConditionTrue, time.Now()).Status.Conditions
	})
	time.AfterFunc(time.Minute, func() { l.alertEnds(name) })
}

// ill makes the node ill for that time.
func (l *live) ill(name string, status corev1.ConditionStatus, from, to time.Time) {
	l.ail(name, status, from)
	l.at(to, func() { l.heal(name) })
}

// silence keeps the node's alerts quiet for that time.
func (l *live) silence(name string, from, to time.Time) {
	l.silences[name] = append(l.silences[name], span{from: from, until: to})
	l.turn(l.silenced, name, from, to)
}

// cures has a reboot cure the node for that time.
func (l *live) cures(name string, from, to time.Time) { l.turn(l.curable, name, from, to) }

func (l *live) turn(on map[string]bool, name string, from, to time.Time) {
	for at, is := range map[time.Time]bool{from: true, to: false} {
		l.at(at, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			on[name] = is
		})
	}
}

func labelsOf(node string) map[string]string {
	return map[string]string{"alertname": "NodeNotReady", "node": node, "remediation": "node-not-ready"}
}

// record notes the alert as Prometheus sends it.
func (l *live) record(a alerts.Alert, endsAt time.Time) {
	set := model.LabelSet{}
	for name, value := range a.Labels {
		set[model.LabelName(name)] = model.LabelValue(value)
	}
	m := l.recorded.at(time.Now())
	m.Alerts = append(m.Alerts, history.Alert{Labels: set, StartsAt: a.StartsAt, EndsAt: endsAt})
}

// alert begins to fire. Its group, which is its alone, is posted after one second, and again each
// minute that has news.
func (l *live) alert(node string) {
	labels := labelsOf(node)
	fp := remediations.Fingerprint(labels)
	l.mu.Lock()
	defer l.mu.Unlock()
	a := alerts.Alert{Labels: labels, StartsAt: time.Now(), Receivers: []string{l.config.Receiver}}
	l.firing[fp] = a
	l.record(a, time.Time{})
	time.AfterFunc(time.Second, func() { l.flush(fp, a, "") })
}

// flush posts the group if its alert differs from the last post.
func (l *live) flush(fp string, of alerts.Alert, said string) {
	l.mu.Lock()
	a, fires := l.firing[fp]
	silenced := l.silenced[of.Labels["node"]]
	l.mu.Unlock()
	status := remediations.StatusResolved
	if fires {
		of, status = a, remediations.StatusFiring
	}
	if status != said && !silenced && (fires || said != "") {
		_, err := l.intake.Record(context.Background(), of.Labels, status, of.StartsAt)
		require.NoError(l.t, err)
		said = status
	}
	if fires {
		time.AfterFunc(time.Minute, func() { l.flush(fp, of, said) })
	}
}

// alertEnds ends the node's alert. The person who fixed an exhausted node then resets the repair.
func (l *live) alertEnds(node string) {
	fp := remediations.Fingerprint(labelsOf(node))
	l.mu.Lock()
	a, fires := l.firing[fp]
	delete(l.firing, fp)
	if fires {
		l.record(a, time.Now())
	}
	l.mu.Unlock()
	r := l.config.Registry.ReadJournal(l.node(node)).Record
	if fires && r != nil && r.Phase == remediations.PhaseExhausted && !l.noReset {
		l.edit(node, func(n *corev1.Node) { n.Annotations[remediations.ResetKey] = "true" })
	}
}

// Look implements engine.AlertSource.
func (l *live) Look(context.Context) []alerts.Replica {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unanswered[""] {
		return []alerts.Replica{{URL: "live", Err: errors.New("connection refused")}}
	}
	w := alerts.Replica{URL: "live", Watchdog: true, WatchdogAt: time.Now(), Alerts: map[string]alerts.Alert{}}
	for fp, a := range l.firing {
		if a.Active = !l.silenced[a.Labels["node"]]; !a.Active {
			a.SilencedBy = []string{"a person"}
		}
		w.Alerts[fp] = a
	}
	return []alerts.Replica{w}
}

// Act implements engine.Actuator: the node is well after three minutes if a reboot cures it.
func (l *live) Act(_ context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	step := l.config.Registry.ReadJournal(l.node(m.Node)).Record.Step.String()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call{m.Node, step, time.Now()})
	if l.refuses {
		return remediations.CallRefused, errors.New("the quota is reached")
	}
	if l.curable[m.Node] {
		time.AfterFunc(3*time.Minute, func() {
			l.edit(m.Node, func(n *corev1.Node) { n.Status.NodeInfo.BootID += " and another" })
			l.curedAt = append(l.curedAt, time.Now())
			l.heal(m.Node)
		})
	}
	return remediations.CallAccepted, nil
}

// surveyed is a provider that is asked before each step.
type surveyed struct{ *live }

// Survey implements engine.Surveyor.
func (l surveyed) Survey(context.Context, engine.Machine) remediations.Survey {
	return remediations.Survey{Trouble: l.trouble}
}

// Work implements engine.Worker: it is the drain.
func (l *live) Work(ctx context.Context, m engine.Machine, mayStill func() error, _ func(note, blocked string)) error {
	if err := mayStill(); err != nil {
		return err
	}
	l.mu.Lock()
	l.calls = append(l.calls, call{m.Node, "drain:1", time.Now()})
	l.mu.Unlock()
	select {
	case <-time.After(l.drains):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Testify implements engine.Witness, for the signs that the Node does not show.
func (l *live) Testify(_ context.Context, m engine.Machine, _ signs.Sign) signs.Testimony {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, fires := l.firing[remediations.Fingerprint(labelsOf(m.Node))]; !fires && l.says == signs.Ill {
		return signs.Testimony{Answer: signs.Well, Saw: "it is over", At: time.Now()}
	}
	return signs.Testimony{Answer: l.says, Saw: "it says " + string(l.says), At: time.Now()}
}

func (l *live) node(name string) *corev1.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[name]
}

// Nodes implements engine.Fleet.
func (l *live) Nodes(context.Context) (out []*corev1.Node, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		out = append(out, l.nodes[name])
	}
	return out, nil
}

// Node implements engine.Fleet.
func (l *live) Node(_ context.Context, name string) (*corev1.Node, error) { return l.node(name), nil }

// Lease implements engine.Fleet.
func (l *live) Lease(ctx context.Context, name string) (time.Time, time.Duration, error) {
	all, err := l.Heartbeats(ctx)
	return all[name].RenewedAt, leaseFor, err
}

// Leases implements engine.Fleet.
func (l *live) Leases(ctx context.Context, _ []string) (map[string]signs.Lease, error) {
	return l.Heartbeats(ctx)
}

// Heartbeats implements engine.Fleet.
func (l *live) Heartbeats(context.Context) (map[string]signs.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]signs.Lease{}
	for name := range l.nodes {
		renewed := time.Now()
		if since, silent := l.silent[name]; silent {
			renewed = since
		}
		out[name] = signs.Lease{ReadAt: time.Now(), RenewedAt: renewed, Duration: leaseFor}
	}
	return out, nil
}

// Write implements engine.NodeWriter.
func (l *live) Write(_ context.Context, was *corev1.Node, c engine.NodeChange) (*corev1.Node, error) {
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[was.Name].DeepCopy()
	if n.ResourceVersion != was.ResourceVersion {
		return nil, engine.ErrConflict
	}
	change(n.Annotations, c.Annotations)
	change(n.Labels, c.Labels)
	if c.Unschedulable != nil {
		n.Spec.Unschedulable, l.cordoned[n.Name] = *c.Unschedulable, *c.Unschedulable
		if *c.Unschedulable {
			l.cordonedAt[n.Name] = append(l.cordonedAt[n.Name], time.Now())
		}
	}
	return l.put(n), nil
}

func (l *live) patch(_ context.Context, was *corev1.Node, annotations map[string]*string) error {
	l.edit(was.Name, func(n *corev1.Node) { change(n.Annotations, annotations) })
	return nil
}

// OwnsCordon implements engine.NodeWriter.
func (l *live) OwnsCordon(_ context.Context, name string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cordoned[name], nil
}

// OwnsAnnotations implements engine.NodeWriter.
func (l *live) OwnsAnnotations(_ context.Context, _ string, keys []string) ([]string, error) {
	return keys, nil
}

// SetBy implements engine.NodeWriter.
func (l *live) SetBy(context.Context, string, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}

// Load implements engine.LedgerStore.
func (l *live) Load(context.Context) (map[string]string, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ledger == nil {
		return nil, "", engine.ErrNotFound
	}
	return maps.Clone(l.ledger), "1", nil
}

// Save implements engine.LedgerStore. There is no other writer.
func (l *live) Save(_ context.Context, data map[string]string, _ string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger = maps.Clone(data)
	return "1", nil
}

// Event implements engine.Recorder.
func (l *live) Event(string, engine.Event) {}
