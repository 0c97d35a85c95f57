package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Limits of the journal of rescues.
const (
	// maxEnded is how many ended rescues the journal keeps: many more than limits.repairsPerNode
	// allows within its window.
	maxEnded = 100
	// MaxControlPlaneHosts is how many hosts a configuration may name, and one rescue may restart.
	MaxControlPlaneHosts = 64
	// maxEntryBytes bounds one line; a longer one was not written by Drydock.
	maxEntryBytes = 256 << 10
)

// Rescue is the repair of the API servers, as recorded in the journal in the state directory. There
// is one at a time.
type Rescue struct {
	V      int                `json:"v"`
	ID     string             `json:"id"`
	Policy string             `json:"policy"`
	Cause  remediations.Cause `json:"cause"`
	Phase  remediations.Phase `json:"phase"`
	// Began is when the rescue was first recorded, and Since when its phase began. Deadline is when
	// the phase must end. Over is when the whole rescue must end; zero before the first attempt.
	Began    time.Time `json:"began"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	Over     time.Time `json:"over,omitzero"`
	// Hosts are the attempts that were issued, oldest first. The last one is the intent, while Acting.
	Hosts []HostTry `json:"hosts,omitempty"`
	// Issued counts all intents, so that each has a different name: a withheld intent leaves no
	// attempt behind.
	Issued int                `json:"issued,omitempty"`
	Hold   *remediations.Hold `json:"hold,omitempty"`
	// Observed is the restart that would have been issued in mode enforce. Absent: there was none.
	Observed *HostTry `json:"observed,omitempty"`
}

// HostTry is one attempt to restart a host's kubelet. Without an outcome it counts as issued.
type HostTry struct {
	Host string `json:"host"`
	// Attempt is the intent's id. It is part of the name of the unit that runs on the host.
	Attempt string                   `json:"attempt"`
	At      time.Time                `json:"at"`
	Outcome remediations.CallOutcome `json:"outcome,omitempty"`
	Why     string                   `json:"why,omitempty"`
	// Evidence is what the host last reported about the unit before the restart.
	Evidence string `json:"evidence,omitempty"`
}

// EndedRescue is a rescue that has ended.
type EndedRescue struct {
	remediations.Entry
	Hosts []HostTry `json:"hosts,omitempty"`
	// ObservedOn is the host whose kubelet would have been restarted in mode enforce.
	ObservedOn string `json:"observedOn,omitempty"`
}

// RescueEntry is one line of the journal. It has exactly one of its parts.
type RescueEntry struct {
	// Rescue is the rescue's state from here on, Dropped the one that ended without a trace.
	Rescue  *Rescue `json:"rescue,omitempty"`
	Dropped string  `json:"dropped,omitempty"`
	// Ended is how the rescue ended. A rescue that ran out of hosts also stays on record.
	Ended *EndedRescue `json:"ended,omitempty"`
	// InHistory is an ended rescue that a Node's history contains now.
	InHistory *RescueInHistory `json:"told,omitempty"`
	// Reset is a person's request: the rescue that ran out of hosts is forgotten, and the counts
	// with it.
	Reset bool `json:"reset,omitempty"`
}

// RescueInHistory records that the Node's history has the rescue, or that there is no such Node.
type RescueInHistory struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// RescueJournal is all that the state directory holds, decoded.
type RescueJournal struct {
	Rescue *Rescue
	// Malformed is why the journal cannot be read; then the other fields mean nothing.
	Malformed error
	// Ended are the rescues that have ended, newest first.
	Ended []EndedRescue
	// InHistory are the nodes whose histories have the ended rescues, by the rescue's id.
	InHistory map[string][]string
	// Forgotten is the newest rescue that a person's reset covers: this one and all before it no
	// longer count. Empty: all count.
	Forgotten string
	// Paused is the content of the file of that name; nil: there is no such file. Reset: a person
	// asks to forget the rescue that ran out of hosts.
	Paused *string
	Reset  bool
}

// DecodeRescueEntry reads one line of the journal. Anything that this version would not itself have
// written is an error.
func DecodeRescueEntry(text string) (RescueEntry, error) {
	var e RescueEntry
	if len(text) > maxEntryBytes {
		return e, fmt.Errorf("the entry has %d bytes, Drydock writes at most %d", len(text), maxEntryBytes)
	}
	if err := remediations.DecodeStrict(text, &e); err != nil {
		return RescueEntry{}, fmt.Errorf("the entry is not readable: %w", err)
	}
	return e, e.validate()
}

// Encode returns the line.
func (e RescueEntry) Encode() string { return remediations.EncodeJSON(e) }

func (e RescueEntry) validate() error {
	parts := 0
	for _, there := range []bool{e.Rescue != nil, e.Dropped != "", e.Ended != nil, e.InHistory != nil, e.Reset} {
		if there {
			parts++
		}
	}
	switch {
	case parts != 1:
		return fmt.Errorf("the entry has %d parts, and every one has exactly one", parts)
	case e.Rescue != nil:
		return e.Rescue.validate()
	case e.Ended != nil && (e.Ended.ID == "" || e.Ended.Policy == "" || !slices.Contains(remediations.Outcomes, e.Ended.Outcome) || e.Ended.Ended.IsZero()):
		return fmt.Errorf("the ended rescue lacks its id, its policy, its outcome or its end")
	case e.Ended != nil && (e.Ended.Outcome == remediations.OutcomeObserved) != (e.Ended.ObservedOn != "" && e.Ended.Would != nil):
		return fmt.Errorf("the ended rescue was observed and does not say what, or the reverse")
	case e.Ended != nil && e.Ended.ObservedOn != "" && remediations.ValidNodeName(e.Ended.ObservedOn) != nil:
		return fmt.Errorf("the ended rescue was observed on a host without a name")
	case e.Ended != nil:
		return validateTries(e.Ended.Hosts)
	case e.InHistory != nil && (e.InHistory.ID == "" || remediations.ValidNodeName(e.InHistory.Node) != nil):
		return fmt.Errorf("the entry names no rescue or no node")
	}
	return nil
}

func (r *Rescue) validate() error {
	switch r.Phase {
	case remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted:
	default:
		return fmt.Errorf("the rescue's phase %q is unknown", text.Line(string(r.Phase), 40))
	}
	switch {
	case r.V != remediations.RecordVersion:
		return fmt.Errorf("the rescue has version %d, this Drydock knows version %d", r.V, remediations.RecordVersion)
	case r.ID == "" || r.Policy == "" || r.Cause.Alert == "" || r.Cause.Request != "":
		return fmt.Errorf("the rescue lacks its id, its policy or its alert")
	case r.Began.IsZero() || r.Since.IsZero() || (r.Phase != remediations.PhaseExhausted && r.Deadline.IsZero()):
		return fmt.Errorf("the rescue has no beginning, no since or no deadline")
	case r.Phase != remediations.PhasePending && (len(r.Hosts) == 0 || r.Over.IsZero()):
		return fmt.Errorf("the rescue is %s and has no attempt, or no end", r.Phase)
	case r.Issued < len(r.Hosts) || len(r.Hosts) > MaxControlPlaneHosts:
		return fmt.Errorf("the rescue has %d attempts of %d that were issued", len(r.Hosts), r.Issued)
	}
	if r.Observed != nil {
		if err := validateTries([]HostTry{*r.Observed}); err != nil {
			return err
		}
	}
	for i, t := range r.Hosts {
		if (t.Outcome == "") != (r.Phase == remediations.PhaseActing && i == len(r.Hosts)-1) {
			return fmt.Errorf("the attempt %s lacks its outcome, or has it too early", text.Line(t.Attempt, 80))
		}
	}
	return validateTries(r.Hosts)
}

func validateTries(tries []HostTry) error {
	for _, t := range tries {
		switch {
		case remediations.ValidNodeName(t.Host) != nil || t.Attempt == "" || t.At.IsZero():
			return fmt.Errorf("an attempt on host %q has no name or no time", text.Line(t.Host, 80))
		case t.Outcome != "" && t.Outcome != remediations.CallAccepted && t.Outcome != remediations.CallRefused && t.Outcome != remediations.CallUnknown:
			return fmt.Errorf("the attempt %s has the outcome %q, which is none", text.Line(t.Attempt, 80), text.Line(string(t.Outcome), 40))
		}
	}
	return nil
}

// last returns the attempt that was issued last; nil: there is no attempt.
func (r *Rescue) last() *HostTry {
	if len(r.Hosts) == 0 {
		return nil
	}
	return &r.Hosts[len(r.Hosts)-1]
}

func (r *Rescue) tried(host string) bool {
	return slices.ContainsFunc(r.Hosts, func(t HostTry) bool { return t.Host == host })
}

func (r *Rescue) clone() *Rescue {
	c := *r
	c.Hosts = slices.Clone(r.Hosts)
	if r.Hold != nil {
		h := *r.Hold
		c.Hold = &h
	}
	if r.Observed != nil {
		o := *r.Observed
		c.Observed = &o
	}
	return &c
}

// With returns the journal with one more entry. The receiver stays unchanged.
func (j RescueJournal) With(e RescueEntry) RescueJournal {
	switch {
	case e.Rescue != nil:
		j.Rescue = e.Rescue.clone()
	case e.Dropped != "" && j.Rescue != nil && j.Rescue.ID == e.Dropped:
		j.Rescue = nil
	case e.Ended != nil:
		j.Ended = append([]EndedRescue{*e.Ended}, j.Ended...)
		j.Ended = j.Ended[:min(len(j.Ended), maxEnded)]
		if j.Rescue != nil && j.Rescue.ID == e.Ended.ID && j.Rescue.Phase != remediations.PhaseExhausted {
			j.Rescue = nil
		}
	case e.InHistory != nil:
		j.InHistory = maps.Clone(j.InHistory)
		if j.InHistory == nil {
			j.InHistory = map[string][]string{}
		}
		j.InHistory[e.InHistory.ID] = append(slices.Clone(j.InHistory[e.InHistory.ID]), e.InHistory.Node)
	case e.Reset:
		if len(j.Ended) > 0 {
			j.Forgotten = j.Ended[0].ID
		}
		if j.Rescue != nil && j.Rescue.Phase == remediations.PhaseExhausted {
			j.Rescue = nil
		}
	}
	return j
}

// Entries returns the fewest entries that give the same journal.
func (j RescueJournal) Entries() []RescueEntry {
	var out []RescueEntry
	for _, e := range slices.Backward(j.Ended) {
		out = append(out, RescueEntry{Ended: &e})
		if e.ID == j.Forgotten {
			out = append(out, RescueEntry{Reset: true})
		}
		for _, node := range j.InHistory[e.ID] {
			out = append(out, RescueEntry{InHistory: &RescueInHistory{ID: e.ID, Node: node}})
		}
	}
	if j.Rescue != nil {
		out = append(out, RescueEntry{Rescue: j.Rescue})
	}
	return out
}

// begun counts the rescues that restarted something on the host in the window, without the named
// one. An attempt that was certainly refused restarted nothing.
func (j RescueJournal) begun(host, except string, now time.Time, window time.Duration) (count int, oldest time.Time) {
	for _, e := range j.Ended {
		if e.ID == j.Forgotten {
			break
		}
		for _, t := range e.Hosts {
			if t.Host == host && t.Outcome != remediations.CallRefused && e.ID != except && now.Sub(t.At) < window {
				count++
				if oldest.IsZero() || t.At.Before(oldest) {
					oldest = t.At
				}
				break
			}
		}
	}
	return count, oldest
}

// MissingInHistory returns the hosts of the ended rescue whose Nodes do not have it in their
// histories yet.
func (j RescueJournal) MissingInHistory(e EndedRescue) []string {
	var out []string
	if on := e.ObservedOn; on != "" && !slices.Contains(j.InHistory[e.ID], on) {
		out = append(out, on)
	}
	for _, t := range e.Hosts {
		if !slices.Contains(j.InHistory[e.ID], t.Host) && !slices.Contains(out, t.Host) {
			out = append(out, t.Host)
		}
	}
	return out
}

// Of returns the ended rescue as an entry in the history of one of its hosts' Nodes.
func (e EndedRescue) Of(host string) remediations.Entry {
	out := e.Entry
	out.Target, out.Evidence = string(remediations.KindAPIServer), ""
	for _, t := range e.Hosts {
		if t.Host == host {
			out.Evidence = t.Evidence
			out.Why = text.Line(fmt.Sprintf("%s: %s; %s", t.Attempt, outcomeOf(t), e.Why), 300)
		}
	}
	return out
}

// outcomeOf describes the result of an attempt for people.
func outcomeOf(t HostTry) string {
	if t.Why == "" {
		return string(t.Outcome)
	}
	return string(t.Outcome) + ": " + t.Why
}
