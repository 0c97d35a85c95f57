package backtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

type story struct {
	config *remediations.Config

	// By the alert's fingerprint. An alert may fire several times: its list is in order of time.
	faults  map[string][]*Fault
	repairs []*Repair
	byID    map[string]*Repair
	// held is by the node's name. holds sums up all holds so far, by policy and reason.
	held     map[string]*holding
	holds    map[Hold]*Held
	byNode   []NodeHold
	breakers map[string]bool
	openings []Opening
	most     int
	heldOnly int
	// Two parts of Drydock's ConfigMap as they were last saved. They show whether the next save
	// changes these parts.
	slots, status string
}

// Fault is one alert about a node in the past.
type Fault struct {
	Alert string    `json:"alert"`
	Node  string    `json:"node"`
	Began time.Time `json:"began"`
	// Ended is when the fault ended in the past. Cured is when a step of the replay is assumed to
	// have ended it. Zero if that did not happen.
	Ended time.Time `json:"ended,omitzero"`
	Cured time.Time `json:"cured,omitzero"`
}

// Repair is one repair of the replay.
type Repair struct {
	ID     string `json:"id"`
	Policy string `json:"policy"`
	Fault
	Recorded time.Time `json:"recorded"`
	Steps    []Step    `json:"steps"`
	// Over is zero if the repair had not ended with the replay. Outcome and Why are empty if the
	// repair did nothing before its alert ended.
	Over    time.Time            `json:"over,omitzero"`
	Outcome remediations.Outcome `json:"outcome,omitempty"`
	Why     string               `json:"why,omitempty"`
	// Unnecessary means that the fault ended by itself before the time limit of the first step.
	Unnecessary bool `json:"unnecessary"`
	// Saved is how much earlier than in the past the fault ended. AtLeast means that the data end
	// before the fault, so Saved may be larger.
	Saved   Seconds `json:"savedSeconds"`
	AtLeast bool    `json:"atLeast"`

	fault *Fault
}

// Step is one issued attempt.
type Step struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	Wait Seconds   `json:"waitSeconds"`
}

// Hold is the reason why repairs of one policy did not begin or continue.
type Hold struct {
	Policy string              `json:"policy"`
	Reason remediations.Reason `json:"reason"`
}

// Held says how often a hold began, its total time, and its longest time.
type Held struct {
	Hold
	Times   int     `json:"times"`
	Total   Seconds `json:"totalSeconds"`
	Longest Seconds `json:"longestSeconds"`
	Nodes   int     `json:"nodes"`

	nodes map[string]bool
}

// NodeHold is one period while the repair of one node was held.
type NodeHold struct {
	Hold
	Node  string    `json:"node"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

type holding struct {
	Hold
	since time.Time
}

// Opening is one period while a circuit breaker was not closed. Scope is what it protects: the
// cluster or a part of it. Until is zero if it was not closed at the end.
type Opening struct {
	Scope string    `json:"scope"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"`
}

func newStory(c *remediations.Config) *story {
	return &story{
		config: c, faults: map[string][]*Fault{}, byID: map[string]*Repair{}, held: map[string]*holding{}, holds: map[Hold]*Held{},
		breakers: map[string]bool{},
	}
}

func (s *story) fault(f *firing, node string, ended time.Time) {
	all := s.faults[f.fingerprint]
	last := len(all) - 1
	switch {
	case ended.IsZero() && (last < 0 || !all[last].Ended.IsZero()) && node != "":
		s.faults[f.fingerprint] = append(all, &Fault{Alert: f.labels[model.AlertNameLabel], Node: node, Began: f.startsAt.UTC()})
	case !ended.IsZero() && last >= 0 && all[last].Ended.IsZero():
		all[last].Ended = ended.UTC()
	}
}

func (s *story) cured(fingerprint string, at time.Time) {
	if all := s.faults[fingerprint]; len(all) > 0 {
		all[len(all)-1].Cured = at.UTC()
	}
}

func (s *story) wrote(now time.Time, before, after *corev1.Node) {
	if text := after.Annotations[remediations.NodeRepairKey]; text != before.Annotations[remediations.NodeRepairKey] && text != "" {
		if r, err := s.config.Registry.DecodeRecord(text); err == nil {
			s.record(now, after.Name, r)
		}
	}
	if text := after.Annotations[remediations.HistoryKey]; text != before.Annotations[remediations.HistoryKey] {
		for _, e := range remediations.DecodeHistory(text) {
			if r := s.byID[e.ID]; r != nil && e.Target == "" && (r.Over.IsZero() || e.Outcome == remediations.OutcomeRelapsed) {
				r.Over, r.Outcome, r.Why = e.Ended.UTC(), e.Outcome, e.Why
			}
		}
	}
	if text := before.Annotations[remediations.NodeRepairKey]; text != "" && after.Annotations[remediations.NodeRepairKey] == "" {
		if was, err := s.config.Registry.DecodeRecord(text); err == nil {
			s.dropped(now, was)
		}
	}
}

// A repair that did nothing is not in the Node's history. Only the removal of its record shows its
// end.
func (s *story) dropped(now time.Time, was *remediations.Record) {
	if r := s.byID[was.ID]; r != nil && r.Over.IsZero() {
		r.Over = now.UTC()
	}
}

func (s *story) record(now time.Time, node string, of *remediations.Record) {
	r := s.byID[of.ID]
	if r == nil {
		r = &Repair{ID: of.ID, Policy: of.Policy, Fault: Fault{Node: node}, Recorded: now.UTC()}
		if all := s.faults[of.Cause.Alert]; len(all) > 0 {
			r.fault = all[len(all)-1]
		}
		s.byID[of.ID], s.repairs = r, append(s.repairs, r)
	}
	if i := of.Intent; i != nil && of.Phase == remediations.PhaseActing && (len(r.Steps) == 0 || r.Steps[len(r.Steps)-1].Name != of.Step.String()) {
		r.Steps = append(r.Steps, Step{Name: of.Step.String(), At: i.At.UTC(), Wait: Seconds(s.config.WaitOf(s.config.Policy(of.Policy), of.Step))})
	}
}

// Only an Event shows the end of a superseded repair.
func (s *story) noteEvent(now time.Time, e engine.Event) {
	if r := s.byID[e.Action]; r != nil && e.Reason == "RepairSuperseded" && r.Over.IsZero() {
		r.Over, r.Outcome, r.Why = now.UTC(), remediations.OutcomeSuperseded, e.Note
	}
}

func (s *story) decided(now time.Time, node string, d lifecycle.Decision) {
	if d.Verb == lifecycle.VerbLook {
		return // the engine only observes the node again
	}
	var hold *Hold
	if d.Verb == lifecycle.VerbHold {
		hold = &Hold{Reason: d.Reason}
		if d.Policy != nil {
			hold.Policy = d.Policy.Name
		}
	}
	was := s.held[node]
	if was != nil && hold != nil && was.Hold == *hold {
		return
	}
	if was != nil {
		s.release(node, now)
	}
	if hold == nil {
		return
	}
	s.held[node] = &holding{*hold, now}
	h := s.holds[*hold]
	if h == nil {
		h = &Held{Hold: *hold, nodes: map[string]bool{}}
		s.holds[*hold] = h
	}
	h.Times++
	h.nodes[node] = true
}

// A deleted Node ends the hold of its repair, and the repair itself if it issued no step.
func (s *story) gone(now time.Time, node string, was *remediations.Record) {
	s.release(node, now)
	if was != nil && s.byID[was.ID] != nil && len(s.byID[was.ID].Steps) == 0 {
		s.dropped(now, was)
	}
}

func (s *story) release(node string, now time.Time) {
	was := s.held[node]
	if was == nil {
		return
	}
	h, took := s.holds[was.Hold], Seconds(now.Sub(was.since))
	h.Total, h.Longest = h.Total+took, max(h.Longest, took)
	if now.After(was.since) {
		s.byNode = append(s.byNode, NodeHold{was.Hold, node, was.since.UTC(), now.UTC()})
	}
	delete(s.held, node)
}

// Called before a gap in the data and at the end of the replay, because no decision follows.
func (s *story) releaseAll(now time.Time) {
	for _, node := range slices.Sorted(maps.Keys(s.held)) {
		s.release(node, now)
	}
}

// Decoding the whole ledger at each save would take a twelfth of a replay's time, so only changed
// parts are decoded.
func (s *story) saved(now time.Time, data map[string]string) {
	if data[ledger.KeySlots] == s.slots && data[ledger.KeyStatus] == s.status {
		return
	}
	s.slots, s.status = data[ledger.KeySlots], data[ledger.KeyStatus]
	var slots []struct{}
	var status struct {
		Breakers map[string]struct{} `json:"breakers"`
	}
	if err := errors.Join(json.Unmarshal([]byte(s.slots), &slots), json.Unmarshal([]byte(s.status), &status)); err != nil {
		return
	}
	s.most = max(s.most, len(slots))
	for _, scope := range slices.Sorted(maps.Keys(status.Breakers)) {
		if !s.breakers[scope] {
			s.breakers[scope] = true
			s.openings = append(s.openings, Opening{Scope: scope, From: now.UTC()})
		}
	}
	for i := range s.openings {
		o := &s.openings[i]
		if _, open := status.Breakers[o.Scope]; !open && o.Until.IsZero() {
			o.Until = now.UTC()
			delete(s.breakers, o.Scope)
		}
	}
}

func (s *story) finish(until time.Time) {
	s.releaseAll(until)
	s.heldOnly = s.onlyHeld(until)
	for _, h := range s.holds {
		h.Nodes = len(h.nodes)
	}
	for _, r := range s.repairs {
		if r.fault == nil {
			continue
		}
		r.Fault = *r.fault
		if len(r.Steps) == 0 {
			continue
		}
		first := r.Steps[0]
		r.Unnecessary = !r.Ended.IsZero() && !r.Ended.After(first.At.Add(time.Duration(first.Wait)))
		if !r.Cured.IsZero() {
			end := r.Ended
			if end.IsZero() {
				end, r.AtLeast = until, true
			}
			r.Saved = Seconds(max(0, end.Sub(r.Cured)))
		}
	}
}

// Faults are counted, not repairs: a fault may have several repairs, one after the other, or none
// if a hold concerns the whole fleet.
func (s *story) onlyHeld(until time.Time) (count int) {
	holds, steps := map[string][]NodeHold{}, map[string][]time.Time{}
	for _, h := range s.byNode {
		holds[h.Node] = append(holds[h.Node], h)
	}
	for _, r := range s.repairs {
		for _, step := range r.Steps {
			steps[r.Node] = append(steps[r.Node], step.At)
		}
	}
	for _, all := range s.faults {
		for _, f := range all {
			end := until
			for _, sooner := range []time.Time{f.Ended, f.Cured} {
				if !sooner.IsZero() && sooner.Before(end) {
					end = sooner
				}
			}
			held := slices.ContainsFunc(holds[f.Node], func(h NodeHold) bool { return h.From.Before(end) && h.Until.After(f.Began) })
			acted := slices.ContainsFunc(steps[f.Node], func(at time.Time) bool { return !at.Before(f.Began) && !at.After(end) })
			if held && !acted {
				count++
			}
		}
	}
	return count
}

func (s *story) heldBy() (out []Held) {
	for _, h := range s.holds {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
