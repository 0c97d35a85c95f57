package remediations

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// dropMalformed forgets a record that nobody can read. What it said is kept, cut, in the history.
func (s *State) dropMalformed(now time.Time) Decision {
	var bytes string
	for _, k := range slices.Sorted(maps.Keys(s.Node.Annotations)) {
		v := s.Node.Annotations[k]
		if _, err := DecodeRecord(v); strings.HasPrefix(k, RepairPrefix) && err != nil {
			bytes = v
		}
	}
	return Decision{
		Verb: Reset, Message: "a record that could not be read was dropped: " + clip(bytes, 900),
		Ended: &Entry{ID: "unreadable", Outcome: Cancelled, Steps: []string{}, Began: at(now), Ended: at(now), Why: clip(bytes, 1024)},
	}
}

// over says that an alert that has led to nothing needs no more thought: nobody has it, and it was said to be
// resolved, or nobody has heard of it for a while.
func (s *State) over(a *Alert, now time.Time) bool {
	return s.Word.about(a.Fingerprint, s.Config).gone && s.Word.BlindCause(s.Config) == "" &&
		(a.Status == StatusResolved || now.Sub(a.ReceivedAt).Abs() > unconfirmedFor) // or received by a clock that was wrong
}

// prune drops the alerts that are over and that no repair refers to any more.
func (s *State) prune(d *Decision, now time.Time) {
	for k, v := range s.Node.Annotations {
		// Drydock's own key, and nothing that it wrote: the poll brings a real alert again.
		if _, err := DecodeAlert(k, v); strings.HasPrefix(k, AlertPrefix) && err != nil {
			d.Prune = append(d.Prune, k)
		}
	}
	slices.Sort(d.Prune)
	if s.stale() || d.Verb == Look {
		return
	}
	kept := s.Journal.Record
	switch {
	case d.Record != nil:
		kept = d.Record
	case d.Verb == End || d.Verb == Drop || d.Verb == Reset:
		kept = nil
	}
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if (kept == nil || kept.Phase == Exhausted || kept.Cause.Alert != a.Fingerprint) && s.over(a, now) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
}

// consume takes people's keys whose time is over or whose effect this decision is, and names those that nobody can read.
func (s *State) consume(d *Decision, now time.Time) {
	if v, ok := s.Node.Annotations[PauseKey]; ok {
		p, err := ParsePause(v)
		switch {
		case err != nil:
			d.Invalid = append(d.Invalid, err.Error())
		case !p.Until.IsZero() && !now.Before(p.Until):
			d.Consume = append(d.Consume, PauseKey)
		}
	}
	s.approval(d)
	if v, ok := s.Node.Annotations[ResetKey]; ok {
		d.Consume = append(d.Consume, ResetKey)
		if err := ParseReset(v); err != nil {
			d.Invalid = append(d.Invalid, err.Error())
		} else if d.Verb != Reset {
			d.Invalid = append(d.Invalid, ResetKey+": there is no exhausted or malformed repair on this node to forget")
		}
	}
}

// approval takes drydock.dev/approve: kept while the repair that it names waits, consumed by its first step, refused
// where nothing waits for it.
func (s *State) approval(d *Decision) {
	v, ok := s.Node.Annotations[ApproveKey]
	if !ok {
		return
	}
	r := s.Journal.Record
	if r != nil && r.ID == v && r.Phase == Pending && r.Intent == nil && d.Verb != Issue && d.Verb != Drop && d.Verb != End {
		return
	}
	d.Consume = append(d.Consume, ApproveKey)
	if d.Verb != Issue || d.Record.ID != v {
		d.Invalid = append(d.Invalid, fmt.Sprintf("%s=%q: no repair of that id waits for approval on this node", ApproveKey, clip(v, 40)))
	}
}
