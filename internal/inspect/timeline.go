package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
)

// Moment is one event of a repair: in the past, now, or expected.
type Moment struct {
	// Name is the kind of the event: alert, request, repair, intent, call, answer, hold or proof.
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	// Due reports that At is the latest possible time. Now reports that the event is happening now.
	Due bool `json:"due,omitempty"`
	Now bool `json:"now,omitempty"`
}

// Timeline has the events of a repair on record, from its cause to the event that Drydock waits
// for.
type Timeline struct {
	Repair  string   `json:"repair"`
	Target  string   `json:"target"`
	Policy  string   `json:"policy"`
	Moments []Moment `json:"moments"`
	// Done are the issued attempts. Passed are the skipped steps, with reasons. Undo is what Drydock
	// undoes when the repair ends.
	Done   []string `json:"done,omitempty"`
	Passed []string `json:"passed,omitempty"`
	Undo   []string `json:"undo,omitempty"`
	Note   string   `json:"note,omitempty"`
}

// Timelines returns one timeline for each repair on record, in the order of Why's repairs.
func (s *Observation) Timelines() []Timeline {
	out := []Timeline{}
	for _, r := range RepairsOn(s.Node) {
		if r.Record != nil {
			out = append(out, s.timeline(r.Target, r.Record))
		}
	}
	return out
}

func (s *Observation) timeline(target string, r *remediations.Record) Timeline {
	t := Timeline{Repair: r.ID, Target: target, Policy: r.Policy, Done: r.Done.Texts(), Note: r.Note, Moments: s.cause(r)}
	add := func(name string, at time.Time, format string, args ...any) {
		t.Moments = append(t.Moments, Moment{Name: name, At: at, Text: fmt.Sprintf(format, args...)})
	}
	add("repair", r.Began, "repair %s by policy %s began", r.ID, r.Policy)
	if i := r.Intent; i != nil {
		add("intent", i.At, "Drydock wrote %s on the Node, before the call", intentOf(i))
		t.Moments = append(t.Moments, answer(r, i))
	}
	if h := r.Hold; h != nil {
		t.Moments = append(t.Moments, Moment{Name: "hold", At: h.Since, Text: (&Hold{Reason: h.Reason, Message: h.Message}).Says(), Now: true})
	}
	slices.SortStableFunc(t.Moments, func(a, b Moment) int { return a.At.Compare(b.At) })
	if r.Phase.InFlight() {
		what := "waiting for the answer and the proof"
		if r.Phase == remediations.PhaseVerifying {
			what = "waiting for the proof: the node is healthy, its alert has ended, and the step's own proof is there"
		}
		t.Moments = append(t.Moments, Moment{Name: "proof", At: r.Deadline, Text: what + "; without the proof, the attempt ends at this time", Due: true, Now: true})
	}
	for _, p := range r.Passed {
		t.Passed = append(t.Passed, fmt.Sprintf("%s: %s", p.Name, p.Why))
	}
	for _, u := range r.Undo {
		t.Undo = append(t.Undo, fmt.Sprintf("%s since %s", strings.TrimSpace(u.Kind+" "+u.Key), Stamp(u.At)))
	}
	return t
}

func (s *Observation) cause(r *remediations.Record) (out []Moment) {
	if r.Cause.Request != "" {
		return []Moment{{Name: "request", At: r.Began, Text: "a person requested " + r.Cause.Request}}
	}
	for _, a := range remediations.AlertsOn(s.Node.Annotations) {
		if a.Fingerprint == r.Cause.Alert {
			out = append(out, Moment{Name: "alert", At: a.StartsAt, Text: fmt.Sprintf("alert %s began to fire", a.Name)})
			if !a.ReceivedAt.Equal(a.StartsAt) {
				out = append(out, Moment{Name: "alert", At: a.ReceivedAt, Text: "Drydock received the alert"})
			}
		}
	}
	return out
}

func intentOf(i *remediations.Intent) string {
	if i.Successor != "" {
		return "intent " + i.ID + " (successor " + i.Successor + ")"
	}
	return "intent " + i.ID
}

func answer(r *remediations.Record, i *remediations.Intent) Moment {
	by := "the provider"
	if i.Provider != "" {
		by = i.Provider
	}
	m := Moment{Name: "answer", At: i.At, Text: fmt.Sprintf("%s accepted %s", by, r.Step)}
	if r.Phase == remediations.PhaseVerifying {
		m.At = r.Since // the phase begins with the answer
	}
	switch i.Outcome {
	case remediations.CallAccepted:
	case remediations.CallRefused:
		m.Text = fmt.Sprintf("%s refused %s and did nothing: %s", by, r.Step, i.Why)
	case remediations.CallUnknown:
		m.Text = fmt.Sprintf("it is unknown whether %s carried out %s: %s", by, r.Step, i.Why)
	default:
		m.Name, m.Now = "call", true
		m.Text = fmt.Sprintf("the call for %s has no answer yet; it counts as an attempt", r.Step)
	}
	return m
}

// Silence is a silence that suppresses an alert of the node, and its author.
type Silence struct {
	ID string `json:"id"`
	// URL is the address of the Alertmanager that has the silence.
	URL     string    `json:"url,omitempty"`
	Author  string    `json:"author,omitempty"`
	Comment string    `json:"comment,omitempty"`
	EndsAt  time.Time `json:"endsAt,omitzero"`
}

// Silences returns the silences of the node's alerts, from the Alertmanagers that were asked.
func (s *Observation) Silences() []Silence {
	out := []Silence{}
	if !s.Asked {
		return out
	}
	for _, id := range s.silences("") {
		one := Silence{ID: id}
		for _, r := range s.State.Snapshot.Replicas {
			if known, ok := r.Silences[id]; ok {
				one.URL, one.Author, one.Comment, one.EndsAt = r.URL, known.Author, known.Comment, known.EndsAt
				break
			}
		}
		out = append(out, one)
	}
	return out
}
