package backtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// journal is everything that the API server showed of the Nodes and the ledger, and how late this
// machine was.
type journal struct {
	mu      sync.Mutex
	nodes   map[string][]sight
	ledgers []page
	stalls  []stall
}

// lived is what Drydock did in the live run, according to the API server, the provider and
// Alertmanager.
type lived struct {
	*journal
	t      *testing.T
	lab    *lab.Lab
	civo   *lab.Civo
	config string
	phase  int64

	acts     []act
	ends     []ending
	openings []opening
	// trials are the repairs that a half-open breaker allowed. boots are the times at which each
	// machine booted.
	trials map[string]bool
	boots  map[string][]time.Time
	// people are the times at which a person kept Drydock away from the node or requested a repair.
	people map[string][]span
	until  time.Time
}

// sight is a state of a Node, with the time when it began. page is the same for the ledger.
type sight struct {
	at     time.Time
	node   *corev1.Node
	record *remediations.Record
}

type page struct {
	at time.Time
	*ledger.Ledger
}

// stall is how late this machine was shortly before that time.
type stall struct {
	at   time.Time
	late time.Duration
}

// act is a step that Drydock issued.
type act struct {
	node, step, repair string
	at                 time.Time
	asked              bool // whether a person requested it
}

func (a act) String() string { return fmt.Sprintf("%s %s %s", a.node, a.step, clock(a.at)) }

// ending is a repair that ended.
type ending struct {
	node string
	remediations.Entry
}

// opening is a period while a breaker was not closed. until is zero if it did not close again.
type opening struct {
	scope       string
	from, until time.Time
}

func (o opening) String() string {
	return fmt.Sprintf("breaker %s from %s until %s", o.scope, clock(o.from), clock(o.until))
}

// span is a period between two times.
type span struct {
	what        string
	from, until time.Time
}

// covers reports whether the time is in the span, or at most give outside of it.
func (s span) covers(at time.Time, give time.Duration) bool {
	return !at.Add(give).Before(s.from) && (s.until.IsZero() || !at.Add(-give).After(s.until))
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "the end"
	}
	return t.UTC().Format(time.TimeOnly)
}

// watch begins to record what happens.
func watch(t *testing.T, on *lab.Lab, civo *lab.Civo) *lived {
	t.Helper()
	l := &lived{journal: &journal{nodes: map[string][]sight{}}, t: t, lab: on, civo: civo}
	factory := informers.NewSharedInformerFactory(on.Client(), 0)
	saw := func(object any) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch o := object.(type) {
		case *corev1.Node:
			l.nodes[o.Name] = append(l.nodes[o.Name], sight{time.Now(), o, remediations.ReadJournal(o).Record})
		case *corev1.ConfigMap:
			if o.Name != "drydock-ledger" {
				return
			}
			if read, err := ledger.Decode(o.Data); err == nil {
				l.ledgers = append(l.ledgers, page{time.Now(), read})
			}
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: saw, UpdateFunc: func(_, is any) { saw(is) }}
	_, err := factory.Core().V1().Nodes().Informer().AddEventHandler(handler)
	require.NoError(t, err)
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(handler)
	require.NoError(t, err)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	go l.measure(t.Context())
	return l
}

// tick is how often this process checks the clock. tolerated is how late it may be on a machine
// that is not busy.
const tick, tolerated = 100 * time.Millisecond, 200 * time.Millisecond

// measure records when this machine is late. Drydock and Prometheus run on the same machine and are
// then as late.
func (l *lived) measure(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		if late := now.Sub(last) - tick; late > tolerated {
			l.mu.Lock()
			l.stalls = append(l.stalls, stall{now, late})
			l.mu.Unlock()
		}
		last = now
	}
}

// onTime is how much later the live Drydock decides on a machine that is not busy: the time for a
// scrape, an evaluation, two checks, and the rounding of times to seconds.
const onTime = 5 * time.Second

// lag returns how much later a decision at that time may come in the live run. It is how late this
// machine was in the half minute before.
func (l *lived) lag(at time.Time) time.Duration {
	out := onTime
	for _, s := range l.stalls {
		if s.at.After(at.Add(-30*time.Second)) && s.at.Before(at.Add(onTime)) {
			out += s.late
		}
	}
	return out
}

// late returns how late this machine was at most in any half minute.
func (l *lived) late() (out time.Duration) {
	for _, s := range l.stalls {
		out = max(out, l.lag(s.at)-onTime)
	}
	return out
}

// leads waits until Drydock leads and has written its ledger.
func (l *lived) leads() {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.ledgers) > 0 && l.ledgers[len(l.ledgers)-1].Status.Blind == ""
	}, lab.Patience, 100*time.Millisecond, "Drydock does not lead")
}

// peace waits until everything has ended: every node is healthy, no repair is under way, and no
// breaker is open. Then it waits for as long as the proof of a last step may take.
func (l *lived) peace() {
	l.t.Helper()
	var restless string
	defer func() {
		if l.t.Failed() {
			l.t.Log("what does not come to an end: " + restless)
		}
	}()
	require.Eventually(l.t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if last := l.ledgers[len(l.ledgers)-1]; len(last.Slots)+len(last.Status.Breakers)+len(last.Status.Holds) > 0 {
			restless = "the ledger"
			return false
		}
		for name, all := range l.nodes {
			is := all[len(all)-1]
			if restless = name; is.record != nil || !remediations.Ready(is.node) || len(remediations.AlertsOn(is.node.Annotations)) > 0 {
				return false
			}
			for _, s := range all {
				if i := intentOf(s.record); i != nil && time.Since(i.At) < stepWait+onTime {
					return false
				}
			}
		}
		return true
	}, lab.Patience, 100*time.Millisecond, "it does not come to an end")
}

func intentOf(r *remediations.Record) *remediations.Intent {
	if r == nil {
		return nil
	}
	return r.Intent
}

// keep writes the journal into the folder of the lab's logs, which is kept after a failed test.
func (l *lived) keep() {
	l.t.Helper()
	type kept struct {
		At     time.Time
		Node   *corev1.Node      `json:",omitempty"`
		Ledger map[string]string `json:",omitempty"`
		Late   time.Duration     `json:",omitempty"`
	}
	var all []kept
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		for _, s := range l.nodes[name] {
			all = append(all, kept{At: s.at, Node: s.node})
		}
	}
	for _, p := range l.ledgers {
		all = append(all, kept{At: p.at, Ledger: p.Encode()})
	}
	for _, s := range l.stalls {
		all = append(all, kept{At: s.at, Late: s.late})
	}
	text, err := json.Marshal(all)
	require.NoError(l.t, err)
	require.NoError(l.t, os.WriteFile(filepath.Join(l.lab.LogDir(), "lived.json"), text, 0o600))
}

// finish returns what happened between from and until, according to the journal.
func (l *lived) finish(from, until time.Time) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.trials, l.boots, l.people = until, map[string]bool{}, map[string][]time.Time{}, map[string][]span{}
	l.keep()
	intents := map[string][]act{}
	for name, all := range l.nodes {
		for i, s := range all {
			l.learn(all, i, s)
			if in := intentOf(s.record); in != nil && s.record.Phase != remediations.PhasePending {
				intents[name] = append(intents[name], act{name, s.record.Step.String(), s.record.ID, in.At, s.record.Cause.Request != ""})
			}
		}
	}
	l.called(intents)
	open := map[string]int{}
	for _, p := range l.ledgers {
		for scope, b := range p.Status.Breakers {
			if _, is := open[scope]; !is {
				open[scope] = len(l.openings)
				l.openings = append(l.openings, opening{scope: scope, from: p.at})
			}
			if b.Trial != "" {
				l.trials[b.Trial] = true
			}
		}
		for scope, i := range open {
			if _, still := p.Status.Breakers[scope]; !still {
				l.openings[i].until = p.at
				delete(open, scope)
			}
		}
	}
	l.silences()
	require.False(l.t, slices.ContainsFunc(l.acts, func(a act) bool { return a.at.Before(from) || a.at.After(until) }), "all happened in that time")
}

// learn evaluates one recorded state of a Node.
func (l *lived) learn(all []sight, i int, s sight) {
	name := s.node.Name
	for _, e := range remediations.DecodeHistory(s.node.Annotations[remediations.HistoryKey]) {
		if !slices.ContainsFunc(l.ends, func(o ending) bool { return o.ID == e.ID && o.node == name }) {
			l.ends = append(l.ends, ending{name, e})
		}
	}
	if i > 0 && all[i-1].node.Status.NodeInfo.BootID != s.node.Status.NodeInfo.BootID {
		l.boots[name] = append(l.boots[name], s.at)
	}
	for _, key := range []string{remediations.PauseKey, remediations.BreakGlassKey, remediations.RequestKey} {
		_, is := s.node.Annotations[key]
		was := false
		if i > 0 {
			_, was = all[i-1].node.Annotations[key]
		}
		switch spans := l.people[name]; {
		case is && !was:
			l.people[name] = append(spans, span{what: key, from: s.at})
		case was && !is:
			for j := range spans {
				if spans[j].what == key && spans[j].until.IsZero() {
					spans[j].until = s.at
				}
			}
		}
	}
}

// called evaluates the calls that had an effect. Which step a call belongs to is in the node's
// record or, if the watch missed that, in its history.
func (l *lived) called(intents map[string][]act) {
	l.t.Helper()
	for _, call := range l.civo.Done(civosim.HardReboots) {
		is := -1
		var node string
		for name, all := range l.nodes {
			if strings.Contains(call.Path, strings.TrimPrefix(all[0].node.Spec.ProviderID, "civo://")) {
				node = name
			}
		}
		require.NotEmpty(l.t, node, call.Path)
		for i, a := range intents[node] {
			known := slices.ContainsFunc(l.acts, func(o act) bool { return o.repair == a.repair && o.step == a.step })
			if !known && !a.at.After(call.At) {
				is = i
				break
			}
		}
		if is >= 0 {
			l.acts = append(l.acts, intents[node][is])
			continue
		}
		before := len(l.acts)
		for _, e := range l.ends {
			if e.node != node || call.At.Before(e.Began) || call.At.After(e.Ended.Add(time.Second)) {
				continue
			}
			for _, step := range e.Steps.Texts() {
				if len(l.acts) == before && !slices.ContainsFunc(l.acts, func(o act) bool { return o.repair == e.ID && o.step == step }) {
					l.acts = append(l.acts, act{node, step, e.ID, call.At, e.Request != ""})
				}
			}
		}
		require.Greater(l.t, len(l.acts), before, "a call for %s at %s is neither in its record nor in its history", node, clock(call.At))
	}
	slices.SortFunc(l.acts, func(a, b act) int { return a.at.Compare(b.at) })
	for _, e := range l.ends {
		for _, step := range e.Steps.Texts() {
			called := slices.ContainsFunc(l.acts, func(o act) bool { return o.repair == e.ID && o.step == step })
			require.True(l.t, called, "the provider was not called for %s of %s, which its history says", step, e.node)
		}
	}
}

// silences asks Alertmanager for the silences of that time.
func (l *lived) silences() {
	l.t.Helper()
	var all []struct {
		StartsAt, EndsAt time.Time
		Matchers         []struct{ Name, Value string }
	}
	require.NoError(l.t, ask(l.t.Context(), l.lab.AlertmanagerURLs()[0]+"/api/v2/silences", "", &all))
	for _, s := range all {
		for _, m := range s.Matchers {
			if m.Name == "node" {
				l.people[m.Value] = append(l.people[m.Value], span{"silence", s.StartsAt, s.EndsAt})
			}
		}
	}
}

// sightOf returns the Node as it was at that time, or nil if it did not exist yet.
func (l *lived) sightOf(node string, at time.Time) *sight {
	all := l.nodes[node]
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].at.After(at) {
			return &all[i]
		}
	}
	return nil
}

func (l *lived) pageAt(at time.Time) *page {
	for i := len(l.ledgers) - 1; i >= 0; i-- {
		if !l.ledgers[i].at.After(at) {
			return &l.ledgers[i]
		}
	}
	return nil
}

// held returns the reasons that could hold the node at that time. That is the reason in its record
// or, if the record has no current reason, the reasons that hold all repairs. It is empty if
// nothing held the node.
func (l *lived) held(node string, at time.Time) (out []string) {
	s := l.sightOf(node, at)
	if s == nil {
		return nil
	}
	if r := s.record; r != nil {
		if r.Phase != remediations.PhasePending {
			return nil
		}
		if h := r.Hold; h != nil && (h.Until == nil || at.Before(*h.Until)) {
			return []string{string(h.Reason)}
		}
	}
	if p := l.pageAt(at); p != nil && (fires(s.node) || s.record != nil) {
		for reason := range p.Status.Holds {
			out = append(out, string(reason))
		}
	}
	slices.Sort(out)
	return out
}

// fires reports whether an alert fires on the Node.
func fires(n *corev1.Node) bool {
	return slices.ContainsFunc(remediations.AlertsOn(n.Annotations), func(a remediations.Alert) bool { return a.Status == remediations.StatusFiring })
}

// everHeld reports whether the reason held a node at any time.
func (l *lived) everHeld(reason string) bool {
	for node, all := range l.nodes {
		for at := all[0].at; at.Before(l.until); at = at.Add(time.Second) {
			if slices.Contains(l.held(node, at), reason) {
				return true
			}
		}
	}
	return false
}

// slots returns the nodes under repair at that time, without this one.
func (l *lived) slots(at time.Time, without string) (out []string) {
	if p := l.pageAt(at); p != nil {
		for _, s := range p.Slots {
			if s.Node != without {
				out = append(out, s.Node)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// keptAway reports whether a person kept Drydock away from the node at that time.
func (l *lived) keptAway(node string, at time.Time, give time.Duration) bool {
	return slices.ContainsFunc(l.people[node], func(s span) bool { return s.what != remediations.RequestKey && s.covers(at, give) })
}

// cordoned reports whether the node was cordoned at that time. Only Drydock cordons nodes here.
func (l *lived) cordoned(node string, at time.Time, give time.Duration) bool {
	for d := -give; d <= give; d += time.Second {
		if s := l.sightOf(node, at.Add(d)); s != nil && s.node.Spec.Unschedulable {
			return true
		}
	}
	return false
}

// without returns the live run as if Drydock had never repaired or held that node.
func (l *lived) without(node string) *lived {
	out := *l
	nodes := maps.Clone(l.nodes)
	delete(nodes, node)
	out.journal = &journal{nodes: nodes, ledgers: l.ledgers, stalls: l.stalls}
	out.acts = slices.DeleteFunc(slices.Clone(l.acts), func(a act) bool { return a.node == node })
	out.ends = slices.DeleteFunc(slices.Clone(l.ends), func(e ending) bool { return e.node == node })
	return &out
}

// ask returns what an address answers. If there is a body, it is posted to the address.
func ask(ctx context.Context, url, body string, into any) error {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, res.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
