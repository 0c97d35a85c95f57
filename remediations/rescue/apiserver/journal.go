package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// These limits bound the size of the journal.
const (
	// Much more than limits.repairsPerNode allows within its window.
	maxEnded = 100
	// MaxControlPlaneHosts bounds the hosts of a configuration, and those that one rescue restarts.
	MaxControlPlaneHosts = 64
	// maxEntryBytes is the largest size of one entry of the journal, in bytes.
	maxEntryBytes = 256 << 10
)

// Rescue is the repair of the API servers, as the journal stores it. There is at most one at a
// time.
type Rescue struct {
	V      int                `json:"v"`
	ID     string             `json:"id"`
	Policy string             `json:"policy"`
	Cause  remediations.Cause `json:"cause"`
	Phase  remediations.Phase `json:"phase"`
	// Since is when the present phase began, and Deadline is when it must end. Over is when the
	// whole rescue must end, or zero before the first restart.
	Began    time.Time `json:"began"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	Over     time.Time `json:"over,omitzero"`
	// The restarts so far, oldest first. While the phase is Acting, the last one is the intent: its
	// outcome is still unknown.
	Hosts []HostTry `json:"hosts,omitempty"`
	// Counts all intents of the rescue, so that each has its own id. Hosts has fewer entries if an
	// intent was written and its call not made.
	Issued int                `json:"issued,omitempty"`
	Hold   *remediations.Hold `json:"hold,omitempty"`
	// The restart that would have been made in enforce mode.
	Observed *HostTry `json:"observed,omitempty"`
}

// HostTry is one attempt to restart a host's kubelet. Without an outcome, the call counts as made.
type HostTry struct {
	Host string `json:"host"`
	// Part of the name of the systemd unit that makes the restart on the host.
	Attempt string                   `json:"attempt"`
	At      time.Time                `json:"at"`
	Outcome remediations.CallOutcome `json:"outcome,omitempty"`
	Why     string                   `json:"why,omitempty"`
	// What the host last reported about the kubelet's systemd unit before the restart.
	Evidence string `json:"evidence,omitempty"`
}

// EndedRescue is a rescue that has ended, with its restarts, oldest first.
type EndedRescue struct {
	remediations.Entry
	Hosts []HostTry `json:"hosts,omitempty"`
	// The host whose kubelet would have been restarted in enforce mode.
	ObservedOn string `json:"observedOn,omitempty"`
}

// RescueEntry is one entry of the journal. Exactly one of its fields is set.
type RescueEntry struct {
	// Dropped is the id of a rescue that ended before it restarted anything. The journal keeps
	// nothing of it.
	Rescue  *Rescue `json:"rescue,omitempty"`
	Dropped string  `json:"dropped,omitempty"`
	// A rescue that has run out of hosts (Exhausted) also remains the present rescue.
	Ended *EndedRescue `json:"ended,omitempty"`
	// The history on a Node now has an ended rescue.
	InHistory *RescueInHistory `json:"told,omitempty"`
	// A person has reset the rescue: the journal forgets the exhausted rescue, and each host's
	// number of restarts.
	Reset bool `json:"reset,omitempty"`
}

// RescueInHistory means that the rescue needs no further write to the history on this Node: the
// history has it, or the Node does not exist.
type RescueInHistory struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// RescueJournal is the decoded content of the state directory: the journal, and the files of
// people.
type RescueJournal struct {
	Rescue *Rescue
	// Why the journal is unreadable. If it is set, Rescue, Ended, InHistory and Forgotten have no
	// meaning.
	Malformed error
	// The newest first.
	Ended []EndedRescue
	// The Nodes whose histories have an ended rescue, by its id.
	InHistory map[string][]string
	// The newest rescue before a person's reset. It and all earlier ones no longer count. Empty if
	// there was no reset.
	Forgotten string
	// Paused is the content of the file named paused, or nil. Reset means that a person has created
	// the file named reset.
	Paused *string
	Reset  bool
}

// DecodeRescueEntry decodes one entry of the journal. It returns an error for any entry that this
// version would not write.
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

// Encode returns the entry as JSON, for the journal.
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
		return fmt.Errorf("the entry has %d parts, and Drydock writes exactly one", parts)
	case e.Rescue != nil:
		return e.Rescue.validate()
	case e.Ended != nil && (e.Ended.ID == "" || e.Ended.Policy == "" || !slices.Contains(remediations.Outcomes, e.Ended.Outcome) || e.Ended.Ended.IsZero()):
		return fmt.Errorf("the ended rescue lacks its id, its policy, its outcome or its end")
	case e.Ended != nil && (e.Ended.Outcome == remediations.OutcomeObserved) != (e.Ended.ObservedOn != "" && e.Ended.Would != nil):
		return fmt.Errorf("the ended rescue's outcome and its observed restart do not match")
	case e.Ended != nil && e.Ended.ObservedOn != "" && remediations.ValidNodeName(e.Ended.ObservedOn) != nil:
		return fmt.Errorf("the ended rescue was observed on a host without a name")
	case e.Ended != nil:
		return validateTries(e.Ended.Hosts)
	case e.InHistory != nil && (e.InHistory.ID == "" || remediations.ValidNodeName(e.InHistory.Node) != nil):
		return fmt.Errorf("the entry lacks the name of a rescue or of a node")
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
			return fmt.Errorf("the attempt %s has the unknown outcome %q", text.Line(t.Attempt, 80), text.Line(string(t.Outcome), 40))
		}
	}
	return nil
}

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

// With returns the journal with the entry e. It does not change j.
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

// Entries returns the shortest list of entries that leads to the same journal.
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

// begun counts the ended rescues, apart from except, that restarted the host's kubelet within the
// window. A refused restart does not count.
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

// MissingInHistory returns the hosts whose Nodes do not have the ended rescue in their histories
// yet.
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

// Of returns the entry about the ended rescue for the history on one host's Node.
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

func outcomeOf(t HostTry) string {
	if t.Why == "" {
		return string(t.Outcome)
	}
	return string(t.Outcome) + ": " + t.Why
}
