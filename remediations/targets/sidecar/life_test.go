package sidecar_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// sidecarLife runs one pod's sidecar and its node through a random history. sidecar.Decide decides,
// and the decisions are carried out as the engine would, on a clock of its own.
type sidecarLife struct {
	t   *testing.T
	s   *sidecar.State
	now time.Time

	uid  string
	gate sidecar.Health
	held string
	// started is when the container of the gate was started. byHand is when a person closed the
	// gate after it was open in the life of that container; zero: never.
	started, byHand time.Time
	// before is the last observation that showed whether the gate is open.
	before *sidecar.Observation
	// hidden: the sidecar does not answer. node is the node of its pod.
	hidden bool
	node   string

	tasks  int
	issued map[string][]time.Time // by repair
	known  map[string]bool        // tasks
	calls  int
}

// look returns what the provider of sidecars observes now.
func (l *sidecarLife) look() {
	g := &sidecar.Observation{At: l.now, Pod: Pod{Namespace: "sei", Name: "a-0", UID: l.uid}, Node: l.node, StartedAt: l.started, Health: l.gate, Held: l.held}
	switch {
	case l.uid == "":
		g.Health, g.Node = "", ""
	case l.hidden:
		g.Health, g.Detail = sidecar.HealthUnreachable, "no answer"
	}
	g.Follow(l.before)
	if g.Health == sidecar.HealthReady || g.Health == sidecar.HealthNotReady {
		l.before = g
	}
	l.s.Seen = g
}

// start changes the gate as a start of its container does.
func (l *sidecarLife) start() {
	l.gate, l.started, l.byHand = sidecar.HealthNotReady, l.now, time.Time{}
}

// turn decides once and carries out the decision.
func (l *sidecarLife) turn(t *rapid.T) {
	s := l.s
	s.Journal = ReadJournal(s.Node)
	s.Record, s.Alerts = nil, nil
	for _, one := range s.Config.Subjects(KindSidecar, s.Journal) {
		if one.Key == s.Key {
			s.Subject = one
		}
	}
	l.tasks++
	s.NewID, s.NewTask = fmt.Sprintf("r%05d", l.tasks), fmt.Sprintf("task-%d", l.tasks)
	before := s.Node.DeepCopy()
	d := sidecar.Decide(s, l.now)
	require.Equal(t, before, s.Node)
	require.Equal(t, d, sidecar.Decide(s, l.now), "pure")
	l.check(t, d)
	if d.Well {
		if s.WellSince.IsZero() {
			s.WellSince = s.Seen.At
		}
	} else {
		s.WellSince = time.Time{}
	}
	if d.Ask.Observation {
		l.look()
	}
	if d.Ask.Heartbeats {
		s.Heartbeats = &signs.Heartbeats{ReadAt: l.now, Nodes: 10, Stale: rapid.SampledFrom([]int{0, 0, 4, 5}).Draw(t, "stale leases")}
	}
	if d.Ask.Alerts {
		s.LookSince, s.Snapshot.AskedAt = l.now, l.now
	}
	for _, k := range append(d.Prune, d.Consume...) {
		delete(s.Node.Annotations, k)
	}
	switch {
	case d.Record != nil:
		s.Node.Annotations[s.Key] = d.Record.Encode()
	case d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop:
		delete(s.Node.Annotations, s.Key)
	}
	if d.Ended != nil {
		s.Node.Annotations[HistoryKey] = EncodeHistory(s.Journal.History, *d.Ended)
	}
	if d.Verb == lifecycle.VerbIssue {
		s.Call = &lifecycle.Call{IntentID: d.Record.Intent.ID}
	}
}

func newSidecarLife(t *testing.T, rt *rapid.T) *sidecarLife {
	sc := scene.ReadSidecar(t, `{}`)
	sc.Policy.Mode = rapid.SampledFrom([]Mode{ModeEnforce, ModeEnforce, ModeEnforce, ModeObserve}).Draw(rt, "mode")
	sc.Policy.RepairCordoned = rapid.Bool().Draw(rt, "repairCordoned")
	sc.Policy.ProofFor = rapid.SampledFrom([]string{"0s", "5s"}).Draw(rt, "proofFor")
	sc.Policy.Plan = []string{fmt.Sprintf("mark-ready %d", rapid.IntRange(1, 3).Draw(rt, "attempts"))}
	s := sc.SidecarState(t)
	s.Config.Limits.Sidecars = rapid.IntRange(1, 3).Draw(rt, "concurrent")
	s.Config.Policies[0].Plan[0].Wait = rapid.SampledFrom([]time.Duration{5 * time.Second, time.Minute}).Draw(rt, "wait")
	return &sidecarLife{t: t, s: s, now: scene.Noon, uid: "pod1", gate: sidecar.HealthNotReady, started: scene.Noon.Add(-rapid.SampledFrom([]time.Duration{0, 10 * time.Minute, 30 * time.Minute}).Draw(rt, "started")), node: "n1", issued: map[string][]time.Time{}, known: map[string]bool{}}
}

func (l *sidecarLife) pass(t *rapid.T, d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(time.Duration(rapid.IntRange(900, 2600).Draw(t, "ms")) * time.Millisecond)
		if l.now.Sub(l.s.Snapshot.AskedAt) > 15*time.Second && l.s.Snapshot.WatchdogMisses >= 0 {
			l.s.Snapshot.AskedAt = l.now // the poll
		}
		for i := range l.s.Snapshot.Replicas { // the source sends its alerts again
			for k, a := range l.s.Snapshot.Replicas[i].Alerts {
				a.UpdatedAt, a.EndsAt = l.s.Snapshot.AskedAt, l.s.Snapshot.AskedAt.Add(4*time.Minute)
				l.s.Snapshot.Replicas[i].Alerts[k] = a
			}
		}
		l.turn(t)
	}
}

func (l *sidecarLife) actions() map[string]func(*rapid.T) {
	n := l.s.Node
	pass := func(t *rapid.T) {
		l.pass(t, rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, 40 * time.Second, 2 * time.Minute}).Draw(t, "for"))
	}
	toggle := func(key, value string) {
		if _, ok := n.Annotations[key]; ok {
			delete(n.Annotations, key)
		} else {
			n.Annotations[key] = value
		}
	}
	alert := func(change func(*alerts.Alert)) {
		for i := range l.s.Snapshot.Replicas {
			for k, a := range l.s.Snapshot.Replicas[i].Alerts {
				change(&a)
				a.Active = len(a.SilencedBy)+len(a.InhibitedBy) == 0
				l.s.Snapshot.Replicas[i].Alerts[k] = a
			}
		}
	}
	people := map[string]func(*rapid.T){
		"pause":   func(*rapid.T) { toggle(PauseKey, "true") },
		"glass":   func(*rapid.T) { toggle(BreakGlassKey, "why") },
		"exclude": func(*rapid.T) { scene.ToggleLabel(n, ExcludeLabel) },
		"cordon":  func(*rapid.T) { n.Spec.Unschedulable = !n.Spec.Unschedulable },
		"cancel": func(t *rapid.T) {
			if r := l.s.Journal.Records[l.s.Key]; r != nil {
				toggle(CancelKey, r.ID)
			}
		},
		"silence": func(*rapid.T) {
			alert(func(a *alerts.Alert) { a.SilencedBy = map[bool][]string{true: {"s"}}[len(a.SilencedBy) == 0] })
		},
		"inhibit": func(*rapid.T) {
			alert(func(a *alerts.Alert) { a.InhibitedBy = map[bool][]string{true: {"i"}}[len(a.InhibitedBy) == 0] })
		},
		"a hold": func(*rapid.T) { l.held = map[bool]string{true: "SeiNode sei/a is paused"}[l.held == ""] },
		"all goes on": func(*rapid.T) {
			maps.DeleteFunc(n.Annotations, func(k, _ string) bool { return k == PauseKey || k == BreakGlassKey || k == CancelKey })
			delete(n.Labels, ExcludeLabel)
			n.Spec.Unschedulable, n.Spec.Taints, l.held, l.hidden, l.node, l.s.Busy = false, nil, "", false, "n1", 0
			delete(n.Annotations, NodeRepairKey)
			alert(func(a *alerts.Alert) { a.SilencedBy, a.InhibitedBy = nil, nil })
			l.s.Snapshot.WatchdogMisses = 0
		},
	}
	world := map[string]func(*rapid.T){
		"the gate": func(t *rapid.T) {
			was := l.gate
			l.gate = rapid.SampledFrom([]sidecar.Health{sidecar.HealthReady, sidecar.HealthNotReady, sidecar.HealthNotReady, sidecar.HealthNotReady, sidecar.HealthProbeError}).Draw(t, "gate")
			if was == sidecar.HealthReady && l.gate == sidecar.HealthNotReady {
				l.byHand = l.now
			}
		},
		"container starts": func(*rapid.T) { l.start() },
		"no answer":        func(*rapid.T) { l.hidden = !l.hidden },
		"replaced":         func(*rapid.T) { l.tasks++; l.uid = fmt.Sprintf("pod%d", l.tasks); l.start() },
		"moved":            func(t *rapid.T) { l.node = rapid.SampledFrom([]string{"n1", "n1", "n2"}).Draw(t, "node") },
		"pod gone":         func(*rapid.T) { l.uid = "" },
		"posted":           func(*rapid.T) { l.post() },
		"leaving":          func(*rapid.T) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} },
		"others":           func(t *rapid.T) { l.s.Busy = rapid.IntRange(0, 3).Draw(t, "busy") },
		"blind":            func(t *rapid.T) { l.s.Snapshot.WatchdogMisses = rapid.SampledFrom([]int{0, 3, -1}).Draw(t, "misses") },
		"a neighbor": func(t *rapid.T) {
			l.neighbour(rapid.SampledFrom([]Phase{"", PhaseActing, PhaseVerifying}).Draw(t, "phase"))
		},
		"the node's repair": func(t *rapid.T) {
			delete(n.Annotations, NodeRepairKey)
			if rapid.Bool().Draw(t, "under way") {
				scene.InFlight(n, "reboot")
			}
		},
		"restart": func(*rapid.T) {
			l.s.Call, l.s.Seen, l.s.WellSince, l.s.LookSince = nil, nil, time.Time{}, time.Time{}
		},
	}
	call := func(t *rapid.T) {
		if l.s.Call != nil && l.s.Call.Outcome == "" {
			l.s.Call.Outcome = rapid.SampledFrom([]CallOutcome{CallAccepted, CallAccepted, CallRefused, CallUnknown}).Draw(t, "outcome")
			if l.s.Call.Outcome != CallRefused && rapid.Bool().Draw(t, "it works") {
				l.gate = sidecar.HealthReady
			}
		}
	}
	return map[string]func(*rapid.T){
		"": func(*rapid.T) {}, "time passes": pass, "more time passes": pass, "and more": pass, "the call": call, "the call again": call,
		"people": scene.OneAction(people), "world": scene.OneAction(world), "world again": scene.OneAction(world), "calm": people["all goes on"],
		"closed by hand late": func(t *rapid.T) {
			people["all goes on"](t)
			l.gate = sidecar.HealthReady
			l.pass(t, 20*time.Minute)
			l.gate, l.byHand = sidecar.HealthNotReady, l.now
			l.post()
			l.pass(t, 40*time.Second)
		},
		"a fresh pod waits": func(t *rapid.T) {
			people["all goes on"](t)
			world["replaced"](t)
			l.post()
			l.pass(t, 10*time.Second)
		},
	}
}

func (l *sidecarLife) post() {
	a := Alert{V: RecordVersion, Name: "SidecarNotReady", Policy: "sidecar-not-ready", Status: StatusFiring, Fingerprint: scene.FP, StartsAt: l.now, ReceivedAt: l.now, Labels: map[string]string{"namespace": "sei", "pod": "a-0"}}
	l.s.Node.Annotations[a.Key()] = a.Encode()
	for i := range l.s.Snapshot.Replicas {
		l.s.Snapshot.Replicas[i].Alerts[scene.FP] = alerts.Alert{Active: true, StartsAt: l.now, UpdatedAt: l.now, EndsAt: l.now.Add(4 * time.Minute)}
	}
}

func (l *sidecarLife) neighbour(p Phase) {
	other := Pod{Namespace: "sei", Name: "b-0", UID: "pod9"}
	delete(l.s.Node.Annotations, SidecarKey(other))
	if p != "" {
		r := scene.SidecarRecord(p)
		r.ID, r.Pod = "r2", &other
		l.s.Node.Annotations[SidecarKey(other)] = r.Encode()
	}
}
